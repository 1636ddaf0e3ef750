//! Sums of numbers over all ranks that do not depend on how the numbers are divided.

use crate::Together;
use crate::gradients::{counted, exponent_above};
use std::array;

/// Bits of the largest number: a sum of 2^31 of them fits a `u64`.
const BITS: i32 = 32;

/// The sums of several kinds of numbers, none below 0, over all ranks. `rows` hands out the numbers of this rank, those of
/// a row by their kind. It is called twice, and hands out the same. With a number that is infinite or none, a sum is infinite.
///
/// # Errors
/// When a peer is lost.
pub(crate) fn exact_sums<const KINDS: usize, I, T>(
    together: &T,
    rows: impl Fn() -> I,
) -> Result<[f64; KINDS], T::Error>
where
    I: Iterator<Item = [f64; KINDS]>,
    T: Together,
{
    // Of a fixed number of kinds, so that sums stay in registers.
    let mut largest = [0.0_f64; KINDS];
    for row in rows() {
        largest = array::from_fn(|kind| match row[kind].is_nan() {
            true => f64::INFINITY,
            false => largest[kind].max(row[kind]),
        });
    }
    together.largest(&mut largest)?;
    let powers = largest.map(|largest| (exponent_above(largest) - BITS).clamp(-1000, 900));
    let per_step = powers.map(|power| 2_f64.powi(-power));
    let mut sums = [0_u64; KINDS];
    for row in rows() {
        sums = array::from_fn(|kind| sums[kind].wrapping_add(counted(row[kind] * per_step[kind])));
    }
    together.sum(&mut sums)?;
    Ok(array::from_fn(|kind| match largest[kind].is_finite() {
        true => sums[kind] as f64 * 2_f64.powi(powers[kind]),
        false => f64::INFINITY,
    }))
}
