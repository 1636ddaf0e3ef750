//! Memory of a device, owned; and how it is parted before there is any.
//!
//! Everything that training needs is one piece of memory. An [`Arena`] hands out its parts; run over an address of 0, it
//! says how much memory a plan needs, on a machine without a GPU too.

use crate::arguments::Pointer;
use crate::driver::{Address, Device};
use crate::error::CudaError;
use crate::streams::Stream;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// What a part of an arena begins at a multiple of: what the driver aligns memory to.
pub(crate) const ALIGNMENT: u64 = 256;

/// Numbers, or structs of numbers without gaps: every bit of them means something, and any bits are a value.
///
/// # Safety
/// That is so.
pub(crate) unsafe trait Plain: Copy + Send + 'static {}

// SAFETY: numbers.
unsafe impl Plain for f32 {}
// SAFETY: as above.
unsafe impl Plain for f64 {}
// SAFETY: as above.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}

/// Some values in a device's memory.
pub(crate) struct DeviceSlice<T> {
    at: u64,
    len: usize,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for DeviceSlice<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for DeviceSlice<T> {}

impl<T> fmt::Debug for DeviceSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#x}", self.len, self.at)
    }
}

impl<T> DeviceSlice<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Where it begins.
    pub(crate) fn address(&self) -> u64 {
        self.at
    }

    /// What a kernel is given of it.
    pub(crate) fn pointer(&self) -> Pointer<T> {
        Pointer::to(self.at)
    }

    /// The same, and nothing of a slice without values.
    pub(crate) fn pointer_if_any(&self) -> Pointer<T> {
        match self.len {
            0 => Pointer::null(),
            _ => self.pointer(),
        }
    }

    /// A part of it.
    ///
    /// # Panics
    /// When the part is not inside.
    pub(crate) fn part(&self, range: Range<usize>) -> Self {
        assert!(
            range.start <= range.end && range.end <= self.len,
            "{range:?} of {}",
            self.len
        );
        Self {
            at: self.at + (range.start * size_of::<T>()) as u64,
            len: range.len(),
            of: PhantomData,
        }
    }

    /// The first values.
    ///
    /// # Panics
    /// When there are fewer.
    pub(crate) fn first(&self, len: usize) -> Self {
        self.part(0..len)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }
}

impl DeviceSlice<f32> {
    /// The same as words of 4 bytes.
    pub(crate) fn words(&self) -> DeviceSlice<u32> {
        DeviceSlice {
            at: self.at,
            len: self.len,
            of: PhantomData,
        }
    }
}

/// Hands out the parts of a piece of memory, one after the other.
#[derive(Debug)]
pub(crate) struct Arena {
    base: u64,
    next: u64,
    /// How far it ever came.
    most: u64,
}

impl Arena {
    /// Of the memory at an address.
    pub(crate) fn new(base: u64) -> Self {
        Self {
            base,
            next: base,
            most: base,
        }
    }

    /// Room for so many values.
    pub(crate) fn take<T: Plain>(&mut self, len: usize) -> DeviceSlice<T> {
        let slice = DeviceSlice {
            at: self.next,
            len,
            of: PhantomData,
        };
        self.next = (slice.at + slice.bytes() as u64).next_multiple_of(ALIGNMENT);
        self.most = self.most.max(self.next);
        slice
    }

    /// How far it has come.
    pub(crate) fn mark(&self) -> u64 {
        self.next
    }

    /// Takes back all that was handed out since then: whoever comes next gets the same memory.
    pub(crate) fn take_back(&mut self, mark: u64) {
        self.next = mark;
    }

    /// Bytes that were handed out at the most.
    pub(crate) fn bytes(&self) -> usize {
        (self.most - self.base) as usize
    }
}

/// A piece of a device's memory.
pub(crate) struct DeviceMemory {
    device: Arc<dyn Device>,
    at: Address,
    bytes: usize,
}

impl DeviceMemory {
    /// So many bytes; `what` says what for.
    pub(crate) fn new(
        device: &Arc<dyn Device>,
        bytes: usize,
        what: &str,
    ) -> Result<Self, CudaError> {
        Ok(Self {
            at: device.allocate(bytes, what)?,
            device: device.clone(),
            bytes,
        })
    }

    /// Where it begins.
    pub(crate) fn address(&self) -> u64 {
        self.at.0
    }

    /// Overwrites a part of it by these values, and waits until that is done.
    ///
    /// # Panics
    /// When the part is not as long as the values, or not of this memory.
    pub(crate) fn write<T: Plain>(
        &self,
        stream: &Stream,
        to: DeviceSlice<T>,
        from: &[T],
    ) -> Result<(), CudaError> {
        self.check(to, from.len());
        let at = Address(to.at);
        // SAFETY: both are as long as is said, by the check, and stay until the stream is waited for.
        unsafe {
            self.device
                .copy_in(stream.handle(), at, from.as_ptr().cast(), to.bytes())?;
        }
        stream.wait()
    }

    /// Queues that a part of it is overwritten by as many values as it has.
    ///
    /// # Safety
    /// The values are there, pinned, and stay as they are until the stream has come that far.
    ///
    /// # Panics
    /// When the part is not of this memory.
    pub(crate) unsafe fn queue_write<T: Plain>(
        &self,
        stream: &Stream,
        to: DeviceSlice<T>,
        from: *const T,
    ) -> Result<(), CudaError> {
        self.check(to, to.len);
        // SAFETY: the part is of this memory, which waits for the streams before it goes; the rest is promised.
        unsafe {
            self.device
                .copy_in(stream.handle(), Address(to.at), from.cast(), to.bytes())
        }
    }

    /// Queues that a part of it is read to as many values.
    ///
    /// # Safety
    /// The values are there, pinned, and nobody looks at them until the stream has come that far.
    ///
    /// # Panics
    /// When the part is not of this memory.
    pub(crate) unsafe fn queue_read<T: Plain>(
        &self,
        stream: &Stream,
        from: DeviceSlice<T>,
        to: *mut T,
    ) -> Result<(), CudaError> {
        self.check(from, from.len);
        // SAFETY: as in `queue_write`.
        unsafe {
            self.device
                .copy_out(stream.handle(), to.cast(), Address(from.at), from.bytes())
        }
    }

    /// Reads a part of it, once everything that was queued on the stream is done.
    ///
    /// # Panics
    /// As [`DeviceMemory::write`].
    pub(crate) fn read<T: Plain>(
        &self,
        stream: &Stream,
        from: DeviceSlice<T>,
        to: &mut [T],
    ) -> Result<(), CudaError> {
        self.check(from, to.len());
        let at = Address(from.at);
        // SAFETY: as in `write`; any bits are a value.
        unsafe {
            self.device
                .copy_out(stream.handle(), to.as_mut_ptr().cast(), at, from.bytes())?;
        }
        stream.wait()
    }

    /// Makes a part of it zeros, in the order of the stream.
    ///
    /// # Panics
    /// When the part is not of this memory.
    pub(crate) fn clear<T: Plain>(
        &self,
        stream: &Stream,
        part: DeviceSlice<T>,
    ) -> Result<(), CudaError> {
        self.check(part, part.len);
        // SAFETY: the part is of this memory, which waits for the streams before it goes.
        unsafe {
            self.device
                .fill(stream.handle(), Address(part.at), 0, part.bytes())
        }
    }

    fn check<T>(&self, part: DeviceSlice<T>, len: usize) {
        let inside =
            part.at >= self.at.0 && part.at + part.bytes() as u64 <= self.at.0 + self.bytes as u64;
        assert!(
            inside && part.len == len,
            "{len} values for {part:?} of {} bytes at {:#x}",
            self.bytes,
            self.at.0
        );
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // SAFETY: it was not given back before. The driver waits until what uses it is done.
        unsafe { self.device.free(self.at) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_arena_are_aligned_and_do_not_overlap() {
        let mut arena = Arena::new(1 << 20);
        let (first, second) = (arena.take::<f32>(65), arena.take::<f64>(1));
        assert_eq!((first.at, second.at), (1 << 20, (1 << 20) + 512));
        assert_eq!(arena.bytes(), 768);
        let mark = arena.mark();
        let lent = arena.take::<u32>(1000);
        arena.take_back(mark);
        assert_eq!(arena.take::<u32>(1).at, lent.at);
        assert_eq!(arena.bytes(), 768 + 4096);
        let part = first.part(3..5);
        assert_eq!((part.at, part.len()), ((1 << 20) + 12, 2));
    }

    #[test]
    #[should_panic(expected = "3..66 of 65")]
    fn a_part_beyond_the_end_is_refused() {
        Arena::new(0).take::<f32>(65).part(3..66);
    }
}
