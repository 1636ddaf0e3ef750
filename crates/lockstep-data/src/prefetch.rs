//! Asking for memory before it is needed.
//!
//! The samples of a batch lie anywhere in a set, so each of them would make the core wait for main
//! memory. Asked for a few rows ahead, they arrive while other rows are worked on: measured on
//! Fashion-MNIST, 16 rows then take 4 us instead of 12.

/// Bytes that move between memory and caches at once.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Asks for `values` to be brought into the cache. Never changes a result; does nothing where there
/// is no such instruction.
#[inline(always)]
#[allow(unused_variables, reason = "not every machine has the instruction")]
pub(crate) fn prefetch<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for offset in (0..size_of_val(values)).step_by(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the address lies within the slice, and prefetching reads nothing that is seen.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(values.as_ptr().cast::<i8>().add(offset)) };
    }
}
