//! Sums of numbers over all ranks that do not depend on how the numbers are divided.

use crate::Together;
use crate::gradients::{exponent_above, whole};

/// Bits of the largest number: a sum of 2^31 of them fits a `u64`.
const BITS: i32 = 32;

/// The sums of several kinds of numbers, none below 0, over all ranks. `rows` hands out the numbers of this rank, those of
/// a row by their kind. It is called twice, and hands out the same.
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
    let sums = exact_sums_of(KINDS, together, rows)?;
    Ok(std::array::from_fn(|kind| sums[kind]))
}

/// The same for a number of kinds that is not known beforehand.
///
/// # Errors
/// When a peer is lost.
pub(crate) fn exact_sums_of<I, T>(
    kinds: usize,
    together: &T,
    rows: impl Fn() -> I,
) -> Result<Vec<f64>, T::Error>
where
    I: Iterator<Item: AsRef<[f64]>>,
    T: Together,
{
    let mut largest = vec![0.0_f64; kinds];
    for row in rows() {
        for (largest, &number) in largest.iter_mut().zip(row.as_ref()) {
            *largest = largest.max(number);
        }
    }
    together.largest(&mut largest)?;
    let power = |&largest: &f64| (exponent_above(largest) - BITS).clamp(-1000, 900);
    let powers: Vec<i32> = largest.iter().map(power).collect();
    let per_step: Vec<f64> = powers.iter().map(|&power| 2_f64.powi(-power)).collect();
    let mut sums = vec![0_u64; kinds];
    for row in rows() {
        let numbers = row.as_ref().iter().zip(&per_step);
        for (sum, (number, per_step)) in sums.iter_mut().zip(numbers) {
            *sum += whole(number * per_step) as u64;
        }
    }
    together.sum(&mut sums)?;
    let sums = sums.into_iter().zip(powers);
    Ok(sums
        .map(|(sum, power)| sum as f64 * 2_f64.powi(power))
        .collect())
}
