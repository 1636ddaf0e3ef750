//! Buffers of pieces that are used again while they are still in a cache.
//!
//! There are as many buffers of each length as there are pieces that long, since all may be under way
//! at once. Mostly few are, and then the same few are used again and again: the others are never touched
//! and cost no memory.

use std::collections::VecDeque;
use std::sync::Arc;

/// Buffers for what is received.
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

/// Buffers for copies of what is sent, each shared by all senders that have yet to send it.
#[derive(Debug)]
pub(super) struct Copies(Vec<CopiesOfLength>);

#[derive(Debug)]
struct CopiesOfLength {
    length: usize,
    /// In the order in which they were sent.
    under_way: VecDeque<Arc<Vec<f32>>>,
    unused: Vec<Arc<Vec<f32>>>,
}

impl Copies {
    /// Room for one copy of each of these lengths.
    pub(super) fn new(lengths: impl Iterator<Item = usize>) -> Self {
        let mut copies: Vec<CopiesOfLength> = Vec::new();
        for length in lengths {
            let unused = Arc::new(vec![0.0; length]);
            match copies.iter_mut().find(|copies| copies.length == length) {
                Some(copies) => copies.unused.push(unused),
                None => copies.push(CopiesOfLength {
                    length,
                    under_way: VecDeque::new(),
                    unused: vec![unused],
                }),
            }
        }
        for copies in &mut copies {
            copies.under_way.reserve(copies.unused.len());
        }
        Self(copies)
    }

    /// A copy of `values`: where the oldest was that is sent, if any is.
    pub(super) fn of(&mut self, values: &[f32]) -> Arc<Vec<f32>> {
        let mut copies = self.0.iter_mut();
        let Some(copies) = copies.find(|copies| copies.length == values.len()) else {
            return Arc::new(values.to_vec());
        };
        let sent = copies.under_way.front_mut();
        let mut copy = match sent.is_some_and(|oldest| Arc::get_mut(oldest).is_some()) {
            true => copies.under_way.pop_front(),
            // What is under way is at most one copy of each piece.
            false => copies.unused.pop().or_else(|| copies.under_way.pop_front()),
        }
        .unwrap_or_default();
        let numbers = super::sender::writable(&mut copy);
        numbers.clear();
        numbers.extend_from_slice(values);
        copies.under_way.push_back(copy.clone());
        copy
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

    #[test]
    fn a_copy_is_overwritten_only_once_every_sender_has_let_go_of_it() {
        let mut copies = Copies::new([2, 2].into_iter());
        let first = copies.of(&[1.0, 1.0]);
        let second = copies.of(&[2.0, 2.0]);
        assert_eq!(
            (&first[..], &second[..]),
            (&[1.0, 1.0][..], &[2.0, 2.0][..])
        );
        let address = first.as_ptr();
        drop(first);
        let third = copies.of(&[3.0, 3.0]);
        assert_eq!(third.as_ptr(), address);
        assert_eq!(second[..], [2.0, 2.0]);
    }
}
