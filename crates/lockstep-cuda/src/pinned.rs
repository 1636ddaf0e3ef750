//! Memory of the machine that a device reads and writes by itself.

use crate::driver::Device;
use crate::error::CudaError;
use crate::memory::{ALIGNMENT, DeviceSlice, Plain};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

/// Values in the machine's memory that the device reads and writes by itself.
pub(crate) struct Pinned<T> {
    device: Arc<dyn Device>,
    at: NonNull<T>,
    len: usize,
}

// SAFETY: it owns its values, as a vector does.
unsafe impl<T: Plain> Send for Pinned<T> {}

impl<T: Plain> Pinned<T> {
    /// So many zeros.
    pub(crate) fn zeros(device: &Arc<dyn Device>, len: usize) -> Result<Self, CudaError> {
        Ok(Self {
            at: device.allocate_pinned(len * size_of::<T>())?.cast(),
            device: device.clone(),
            len,
        })
    }
}

impl<T> Deref for Pinned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: so many values are ours, aligned as a page is, and were made zeros, which any `Plain` may be.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Pinned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; they are borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        let bytes = self.len * size_of::<T>();
        // SAFETY: it was not given back before, and every copy is waited for.
        unsafe { self.device.free_pinned(self.at.cast(), bytes) };
    }
}

/// Hands out parts of pinned memory that lie there as an [`Arena`] has handed them out.
pub(crate) struct PinnedParts<'a> {
    rest: &'a mut [u32],
}

impl<'a> PinnedParts<'a> {
    /// Of these words, whose first is as aligned as an arena is.
    pub(crate) fn new(words: &'a mut [u32]) -> Self {
        Self { rest: words }
    }

    /// As many values as the next slice of the arena has.
    ///
    /// # Panics
    /// When there are not as many.
    pub(crate) fn next<T: Plain>(&mut self, like: DeviceSlice<T>) -> &'a mut [T] {
        let bytes = (like.bytes() as u64).next_multiple_of(ALIGNMENT);
        let words = bytes as usize / size_of::<u32>();
        let (part, rest) = std::mem::take(&mut self.rest).split_at_mut(words);
        self.rest = rest;
        let at = part.as_mut_ptr().cast::<T>();
        assert!(at.is_aligned(), "pinned memory begins as a page does");
        // SAFETY: the words are borrowed for as long, are at least as many bytes, are aligned, and any bits are a value.
        unsafe { std::slice::from_raw_parts_mut(at, like.len()) }
    }
}
