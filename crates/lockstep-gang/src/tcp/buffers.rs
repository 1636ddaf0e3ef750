//! Buffers of pieces that are used again while they are still in a cache.
//!
//! There are as many buffers of each length as there are pieces that long, since all may be under way
//! at once. Mostly few are, and then the same few are used again and again: the others are never touched
//! and cost no memory.

/// Buffers for what is received, or sent.
#[derive(Debug)]
pub(super) struct FreeBuffers(Vec<(usize, Vec<Vec<f32>>)>);

impl FreeBuffers {
    /// One buffer for each of these lengths.
    pub(super) fn new(lengths: impl Iterator<Item = usize>) -> Self {
        let mut free = Self(Vec::new());
        for length in lengths {
            let buffer = vec![0.0; length];
            match free.of(length) {
                Some(buffers) => buffers.push(buffer),
                None => free.0.push((length, vec![buffer])),
            }
        }
        free
    }

    fn of(&mut self, length: usize) -> Option<&mut Vec<Vec<f32>>> {
        let mut classes = self.0.iter_mut();
        classes.find_map(|(found, buffers)| (*found == length).then_some(buffers))
    }

    /// The buffer of this length that was used last.
    pub(super) fn take(&mut self, length: usize) -> Option<Vec<f32>> {
        self.of(length)?.pop()
    }

    /// Takes a used buffer back.
    pub(super) fn give_back(&mut self, buffer: Vec<f32>) {
        if let Some(buffers) = self.of(buffer.len()) {
            buffers.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_was_just_used_is_used_next() {
        let mut free = FreeBuffers::new([4, 4, 7].into_iter());
        let (first, second) = (free.take(4).unwrap(), free.take(4).unwrap());
        assert!(free.take(4).is_none());
        assert!(free.take(5).is_none());
        let address = first.as_ptr();
        free.give_back(second);
        free.give_back(first);
        let again = free.take(4).unwrap();
        assert_eq!(again.as_ptr(), address);
        assert_eq!(free.take(7).unwrap().len(), 7);
    }
}
