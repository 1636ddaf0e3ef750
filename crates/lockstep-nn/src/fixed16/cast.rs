//! Buffers of `f32` seen as bytes, words and totals: all of it lies in the same scratch memory as everything else.

use super::product::Totals;

/// Numbers as bytes.
pub(super) fn bytes(numbers: &[f32]) -> &[i8] {
    // SAFETY: any bits are bytes, which need no alignment, and the length in bytes is the same.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) }
}

/// The same, to be changed.
pub(super) fn bytes_mut(numbers: &mut [f32]) -> &mut [i8] {
    // SAFETY: as in `bytes`, and any four bytes are an `f32`.
    unsafe { std::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), size_of_val(numbers)) }
}

/// Numbers as words of four bytes.
pub(super) fn words_mut(numbers: &mut [f32]) -> &mut [u32] {
    // SAFETY: both have the same size and alignment, and any bits are valid in both.
    unsafe { std::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), numbers.len()) }
}

/// Numbers as totals of blocks, as many as fit.
pub(super) fn totals_mut(numbers: &mut [f32]) -> &mut [Totals] {
    // SAFETY: totals are integers, which any bits are.
    let (before, totals, _) = unsafe { numbers.align_to_mut() };
    assert!(before.is_empty(), "scratch memory begins on a cache line");
    totals
}
