//! Vectors of one length, of which a thread uses the same range each.

use super::tiles::{SharedMut, Tiles, check_ranges};
use crate::buffer::Buffer;
use crate::factors::add;
use crate::layers::carved;
use std::ops::Range;

/// Vectors of the same length.
#[derive(Debug, Default)]
pub struct VectorSet {
    /// One vector behind the other.
    numbers: Buffer,
    length: usize,
    count: usize,
}

impl VectorSet {
    /// So many vectors of zeros.
    pub fn zeros(count: usize, length: usize) -> Self {
        Self {
            numbers: Buffer::zeros(count * carved(length)),
            length,
            count,
        }
    }

    /// A range of a vector.
    pub fn part(&self, vector: usize, range: Range<usize>) -> &[f32] {
        &self.numbers[place(vector, self.length, range)]
    }

    /// A range of a vector, to be changed.
    pub fn part_mut(&mut self, vector: usize, range: Range<usize>) -> &mut [f32] {
        &mut self.numbers[place(vector, self.length, range)]
    }

    /// Adds a range of a vector to that of another one.
    pub fn add(&mut self, into: usize, from: usize, range: Range<usize>) {
        let [into, from] = [into, from].map(|vector| place(vector, self.length, range.clone()));
        let [into, from] = (self.numbers.get_disjoint_mut([into, from])).expect("two vectors");
        add(into, from);
    }

    /// Tiles that are ranges of all vectors.
    ///
    /// # Panics
    /// When the ranges do not follow each other.
    pub fn ranges_mut<'a>(&'a mut self, ranges: &'a [Range<usize>]) -> VectorRanges<'a> {
        check_ranges(ranges);
        VectorRanges {
            numbers: SharedMut::new(&mut self.numbers),
            length: self.length,
            count: self.count,
            ranges,
        }
    }
}

fn place(vector: usize, length: usize, range: Range<usize>) -> Range<usize> {
    let start = vector * carved(length);
    start + range.start..start + range.end
}

/// Ranges of all vectors of a set, each for one thread.
pub struct VectorRanges<'a> {
    numbers: SharedMut<'a, f32>,
    length: usize,
    count: usize,
    ranges: &'a [Range<usize>],
}

/// The same range of all vectors of a set.
pub struct VectorRange<'a> {
    numbers: SharedMut<'a, f32>,
    length: usize,
    count: usize,
    range: Range<usize>,
}

// SAFETY: ranges of different numbers do not overlap, in any vector.
unsafe impl<'a> Tiles for VectorRanges<'a> {
    type Tile = VectorRange<'a>;

    fn count(&self) -> usize {
        self.ranges.len()
    }

    unsafe fn tile(&self, number: usize) -> VectorRange<'a> {
        VectorRange {
            numbers: self.numbers.again(),
            length: self.length,
            count: self.count,
            range: self.ranges[number].clone(),
        }
    }
}

impl VectorRange<'_> {
    /// The range of one vector.
    pub fn part_mut(&mut self, vector: usize) -> &mut [f32] {
        assert!(vector < self.count, "vector {vector} of {}", self.count);
        let place = place(vector, self.length, self.range.clone());
        // SAFETY: this thread alone has this range, and `self` is borrowed mutably.
        unsafe { self.numbers.part(place) }
    }

    /// Adds one vector to another.
    pub fn add(&mut self, into: usize, from: usize) {
        assert!(into != from, "vector {into} is added to itself");
        assert!(
            into.max(from) < self.count,
            "vectors {into} and {from} of {}",
            self.count
        );
        let [into, from] =
            [into, from].map(|vector| place(vector, self.length, self.range.clone()));
        // SAFETY: this thread alone has this range, `self` is borrowed mutably, and the vectors are two.
        let (into, from) = unsafe { (self.numbers.part(into), self.numbers.part(from)) };
        add(into, from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::Threads;

    #[test]
    fn threads_add_vectors_range_by_range() {
        let (threads, ranges) = (Threads::with_threads(3).unwrap(), [0..5, 5..6, 8..100]);
        let mut vectors = VectorSet::zeros(3, 100);
        threads.each(vectors.ranges_mut(&ranges), |number, mut range| {
            for vector in 0..3 {
                range.part_mut(vector).fill((10 * number + vector) as f32);
            }
            range.add(0, 2);
        });
        vectors.add(1, 0, 50..51);
        assert_eq!(vectors.part(0, 4..9), [2.0, 22.0, 0.0, 0.0, 42.0]);
        assert_eq!(vectors.part(1, 49..52), [21.0, 63.0, 21.0]);
        assert_eq!(vectors.part_mut(2, 99..100), [22.0]);
    }
}
