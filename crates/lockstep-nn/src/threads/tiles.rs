//! What a job's tiles are cut from: slices, of which each tile is given its own part.

use std::marker::PhantomData;
use std::ops::Range;

/// Something that is cut into numbered tiles, each for one thread.
///
/// # Safety
/// Tiles of different numbers share nothing that can be changed through either.
pub unsafe trait Tiles: Sync {
    /// What a thread is given.
    type Tile;

    /// How many there are.
    fn count(&self) -> usize;

    /// The tile of a number below [`Tiles::count`].
    ///
    /// # Safety
    /// The same tile is not asked for twice while the first is in use.
    unsafe fn tile(&self, number: usize) -> Self::Tile;
}

/// A slice in pieces of the same length; the last may be shorter. They are only read.
pub struct Pieces<'a, T> {
    slice: &'a [T],
    length: usize,
}

/// The same, to be changed.
pub struct PiecesMut<'a, T> {
    slice: SharedMut<'a, T>,
    length: usize,
}

/// Cuts a slice that is only read.
pub fn pieces<T>(slice: &[T], length: usize) -> Pieces<'_, T> {
    Pieces { slice, length }
}

/// Cuts a slice that is to be changed.
pub fn pieces_mut<T>(slice: &mut [T], length: usize) -> PiecesMut<'_, T> {
    PiecesMut {
        slice: SharedMut::new(slice),
        length,
    }
}

fn piece(number: usize, length: usize, all: usize) -> Range<usize> {
    number * length..((number + 1) * length).min(all)
}

// SAFETY: nothing is changed.
unsafe impl<'a, T: Sync> Tiles for Pieces<'a, T> {
    type Tile = &'a [T];

    fn count(&self) -> usize {
        self.slice.len().div_ceil(self.length)
    }

    unsafe fn tile(&self, number: usize) -> Self::Tile {
        &self.slice[piece(number, self.length, self.slice.len())]
    }
}

// SAFETY: ranges of different numbers do not overlap.
unsafe impl<'a, T: Send> Tiles for PiecesMut<'a, T> {
    type Tile = &'a mut [T];

    fn count(&self) -> usize {
        self.slice.len().div_ceil(self.length)
    }

    unsafe fn tile(&self, number: usize) -> Self::Tile {
        // SAFETY: by this function's contract, nobody else has this range, nor one that overlaps it.
        unsafe { (self.slice).part(piece(number, self.length, self.slice.len())) }
    }
}

/// Ranges of a slice that follow each other, to be changed. Those of an empty slice are empty.
pub(crate) struct RangesMut<'a, T> {
    slice: SharedMut<'a, T>,
    ranges: &'a [Range<usize>],
}

/// Cuts ranges out of a slice that is to be changed.
///
/// # Panics
/// When they do not follow each other.
pub(crate) fn ranges_mut<'a, T>(
    slice: &'a mut [T],
    ranges: &'a [Range<usize>],
) -> RangesMut<'a, T> {
    check_ranges(ranges);
    RangesMut {
        slice: SharedMut::new(slice),
        ranges,
    }
}

/// Ranges follow each other.
pub(super) fn check_ranges(ranges: &[Range<usize>]) {
    let mut pairs = ranges.windows(2);
    let follow = pairs.all(|pair| pair[0].end <= pair[1].start);
    assert!(follow, "ranges that overlap, or go back: {ranges:?}");
}

// SAFETY: ranges of different numbers do not overlap.
unsafe impl<'a, T: Send> Tiles for RangesMut<'a, T> {
    type Tile = &'a mut [T];

    fn count(&self) -> usize {
        self.ranges.len()
    }

    unsafe fn tile(&self, number: usize) -> Self::Tile {
        let range = match self.slice.len() {
            0 => 0..0,
            _ => self.ranges[number].clone(),
        };
        // SAFETY: by this function's contract, nobody else has this range, nor one that overlaps it.
        unsafe { self.slice.part(range) }
    }
}

/// Tiles that are only numbers: whoever computes them finds out what to read and write.
// SAFETY: there is nothing to change.
unsafe impl Tiles for Range<usize> {
    type Tile = usize;

    fn count(&self) -> usize {
        self.len()
    }

    unsafe fn tile(&self, number: usize) -> usize {
        self.start + number
    }
}

/// Several things that are cut into as many tiles go together, as far as the shortest goes.
macro_rules! together {
    ($($kind:ident $at:tt),+) => {
        // SAFETY: each part has this property.
        unsafe impl<$($kind: Tiles),+> Tiles for ($($kind,)+) {
            type Tile = ($($kind::Tile,)+);

            fn count(&self) -> usize {
                let counts = [$(self.$at.count()),+];
                counts.into_iter().min().unwrap_or(0)
            }

            unsafe fn tile(&self, number: usize) -> Self::Tile {
                // SAFETY: by this function's contract.
                unsafe { ($(self.$at.tile(number),)+) }
            }
        }
    };
}
together!(A 0, B 1);
together!(A 0, B 1, C 2);
together!(A 0, B 1, C 2, D 3);

/// A slice that several threads change at once, each at places of its own.
pub(crate) struct SharedMut<'a, T> {
    start: *mut T,
    length: usize,
    borrowed: PhantomData<&'a mut [T]>,
}

// SAFETY: it hands out what it borrows mutably, and by the contract of `part` each number to one thread at a time.
unsafe impl<T: Send> Sync for SharedMut<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for SharedMut<'_, T> {}

impl<'a, T> SharedMut<'a, T> {
    pub(crate) fn new(slice: &'a mut [T]) -> Self {
        Self {
            start: slice.as_mut_ptr(),
            length: slice.len(),
            borrowed: PhantomData,
        }
    }

    /// The same slice once more.
    pub(crate) fn again(&self) -> Self {
        Self {
            start: self.start,
            length: self.length,
            borrowed: PhantomData,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Where a number lies, or the end.
    ///
    /// # Panics
    /// When that is beyond the slice.
    pub(crate) fn pointer(&self, at: usize) -> *mut T {
        assert!(at <= self.length, "a place outside of its slice");
        // SAFETY: it lies inside of the slice, or at its end.
        unsafe { self.start.add(at) }
    }

    /// Some numbers, to be changed.
    ///
    /// # Safety
    /// Nobody has a part that overlaps this one while this one is in use.
    ///
    /// # Panics
    /// When the range goes beyond the slice.
    #[inline(always)]
    pub(crate) unsafe fn part(&self, range: Range<usize>) -> &'a mut [T] {
        assert!(
            range.start <= range.end && range.end <= self.length,
            "a part outside of its slice"
        );
        // SAFETY: the range lies inside of the slice, which is borrowed mutably, and by this function's contract nobody
        // else uses it.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }
}
