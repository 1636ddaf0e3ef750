//! Numbers that begin on a cache line.
//!
//! A vector register is as wide as a cache line. Where rows do not begin on one, every access touches
//! two lines; the allocator alone gives 16 bytes. Buffers of megabytes that are read over and over may
//! ask for large pages, so that finding them in memory takes less.

use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

/// Numbers of a cache line.
pub(crate) const LINE: usize = 16;

#[repr(C, align(64))]
#[derive(Debug, Clone, Copy)]
struct CacheLine([f32; LINE]);

/// A vector of fixed length whose first number begins a cache line.
#[derive(Debug, Clone, Default)]
pub struct Buffer {
    lines: Vec<CacheLine>,
    len: usize,
}

impl Buffer {
    /// So many zeros.
    pub fn zeros(len: usize) -> Self {
        Self {
            lines: vec![CacheLine([0.0; LINE]); len.div_ceil(LINE)],
            len,
        }
    }

    /// So many zeros, in large pages where the system gives them.
    pub(crate) fn large(len: usize) -> Self {
        let mut lines = Vec::with_capacity(len.div_ceil(LINE));
        // Before the memory is written to for the first time: pages are found then.
        ask_for_large_pages(lines.spare_capacity_mut());
        lines.resize(len.div_ceil(LINE), CacheLine([0.0; LINE]));
        Self { lines, len }
    }
}

/// Tells the system that these lines are worth large pages. It need not listen.
#[cfg(target_os = "linux")]
fn ask_for_large_pages(lines: &mut [MaybeUninit<CacheLine>]) {
    /// A large page: advice is given for whole ones, so that it is page by page at any size of pages.
    const PAGE: usize = 2 << 20;
    let skip = lines.as_ptr().align_offset(PAGE);
    let bytes = size_of_val(lines.get(skip..).unwrap_or_default()) / PAGE * PAGE;
    if bytes > 0 {
        let start = lines[skip..].as_mut_ptr().cast();
        // SAFETY: the range is whole pages inside of memory that is ours; the advice changes none of it.
        let _ = unsafe { rustix::mm::madvise(start, bytes, rustix::mm::Advice::LinuxHugepage) };
    }
}

#[cfg(not(target_os = "linux"))]
fn ask_for_large_pages(_: &mut [MaybeUninit<CacheLine>]) {}

impl From<&[f32]> for Buffer {
    fn from(numbers: &[f32]) -> Self {
        let mut buffer = Self::zeros(numbers.len());
        buffer.copy_from_slice(numbers);
        buffer
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: a line is exactly its numbers, without padding, and `len` of them are allocated and
        // initialised.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as in `deref`; the lines are borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_begins_on_a_line_and_keeps_its_numbers() {
        for len in [0, 1, 15, 16, 17, 1000] {
            let numbers: Vec<f32> = (0..len).map(|i| i as f32).collect();
            let buffer = Buffer::from(&numbers[..]);
            assert_eq!(*buffer, *numbers);
            assert!(buffer.as_ptr().addr().is_multiple_of(64));
        }
    }

    #[test]
    fn large_buffers_are_zeros_of_the_right_length() {
        for len in [0, 1, 1000, 3_000_001] {
            let mut buffer = Buffer::large(len);
            assert_eq!(buffer.len(), len);
            assert!(buffer.iter().all(|&x| x == 0.0));
            buffer.fill(1.0);
        }
    }
}
