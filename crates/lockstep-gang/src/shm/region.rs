//! A mapped part of a segment: the only place where shared memory is touched.
//!
//! The front of the region holds *words*, the rest *floats*; the border is fixed when it is mapped.
//! Words are only ever accessed as atomics, so that sharing them is always sound. Floats are plain
//! memory. Whoever asks for them promises that, while the slice lives,
//!
//! - for `floats`: no process or thread writes there;
//! - for `floats_mut`: no process or thread reads or writes there.
//!
//! What makes the promise true is the protocol, written down in [`crate::collective`]: a region of
//! floats changes hands only through a stamp that one side stores with `Release` and the other loads
//! with `Acquire`. Processes that share the segment are this same program, and trusted.

use crate::{GangError, Segment};
use memmap2::{MmapOptions, MmapRaw};
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// A part of a segment begins at a multiple of this, which is a whole number of pages on every machine.
pub(crate) const PAGE: usize = 64 << 10;

/// A mapping of a part of a segment.
#[derive(Debug)]
pub(crate) struct Region {
    map: MmapRaw,
    /// Bytes of words, before the floats begin.
    words: usize,
}

impl Region {
    /// Maps these bytes of `segment` and touches all of their pages, so that no step has to.
    ///
    /// # Panics
    /// If the range does not begin on a page, or the segment ends before it does.
    pub(crate) fn map(
        segment: &Segment,
        range: Range<usize>,
        words: usize,
    ) -> Result<Self, GangError> {
        Self::map_by(segment, range, words, MmapOptions::new().populate())
    }

    /// The same without touching pages: for what is written now and then.
    ///
    /// # Panics
    /// As [`map`](Self::map).
    pub(crate) fn map_lazily(segment: &Segment, range: Range<usize>) -> Result<Self, GangError> {
        Self::map_by(segment, range, 0, &mut MmapOptions::new())
    }

    /// The same without touching pages, where only a part will ever be written.
    ///
    /// # Panics
    /// As [`map`](Self::map).
    pub(crate) fn map_sparsely(
        segment: &Segment,
        range: Range<usize>,
        words: usize,
    ) -> Result<Self, GangError> {
        Self::map_by(segment, range, words, &mut MmapOptions::new())
    }

    fn map_by(
        segment: &Segment,
        range: Range<usize>,
        words: usize,
        options: &mut MmapOptions,
    ) -> Result<Self, GangError> {
        assert!(
            range.start.is_multiple_of(PAGE) && range.end <= segment.bytes(),
            "a segment of {} bytes cannot be mapped at {range:?}",
            segment.bytes()
        );
        let map = options
            .offset(range.start as u64)
            .len(range.len())
            .map_raw(segment.file())
            .map_err(GangError::io("map shared memory"))?;
        assert!(
            words <= map.len(),
            "a mapping of {} bytes has no room for words",
            map.len()
        );
        Ok(Self { map, words })
    }

    /// The word at byte `offset`.
    #[inline]
    pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(
            offset.is_multiple_of(8) && offset < self.words,
            "no word at {offset}"
        );
        // SAFETY: inside the mapping, which lives as long as self; aligned, since mappings begin on
        // a page; and this part of the region is only ever accessed as atomics.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(offset).cast()) }
    }

    /// `len` floats at byte `offset`.
    ///
    /// # Safety
    /// Nobody writes there while the slice lives.
    #[inline]
    pub(crate) unsafe fn floats(&self, offset: usize, len: usize) -> &[f32] {
        self.check(offset, len);
        // SAFETY: checked to be in bounds, aligned and apart from the words; any bits are an f32;
        // the caller promises that nobody writes.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(offset).cast(), len) }
    }

    /// `len` floats at byte `offset`, to be written.
    ///
    /// # Safety
    /// Nobody else reads or writes there while the slice lives.
    #[inline]
    #[allow(clippy::mut_from_ref)] // The memory is shared with other processes: self cannot own it.
    pub(crate) unsafe fn floats_mut(&self, offset: usize, len: usize) -> &mut [f32] {
        self.check(offset, len);
        // SAFETY: as in `floats`; the caller promises that nobody else reads or writes.
        unsafe { std::slice::from_raw_parts_mut(self.map.as_mut_ptr().add(offset).cast(), len) }
    }

    fn check(&self, offset: usize, len: usize) {
        assert!(
            offset.is_multiple_of(4)
                && offset >= self.words
                && offset <= self.map.len()
                && len <= (self.map.len() - offset) / 4,
            "no {len} floats at {offset}"
        );
    }
}
