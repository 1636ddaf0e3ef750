//! Sums of numbers over all ranks that do not depend on how the numbers are divided.

use crate::Together;
use crate::gradients::{exponent_above, whole};

/// Bits of the largest number: a sum of 2^31 of them fits a `u64`.
const BITS: i32 = 32;

/// Takes in a number of this kind.
type Add<'a> = dyn FnMut(usize, f64) + 'a;

/// The sums of several kinds of numbers, none below 0, over all ranks. `each` is called twice and hands the numbers of
/// this rank to what it is given, with the kind of each.
///
/// # Errors
/// When a peer is lost.
pub(crate) fn exact_sums<const KINDS: usize, T: Together>(
    together: &T,
    each: &dyn Fn(&mut Add<'_>),
) -> Result<[f64; KINDS], T::Error> {
    let sums = exact_sums_of(KINDS, together, each)?;
    Ok(std::array::from_fn(|kind| sums[kind]))
}

/// The same for a number of kinds that is not known beforehand.
///
/// # Errors
/// When a peer is lost.
pub(crate) fn exact_sums_of<T: Together>(
    kinds: usize,
    together: &T,
    each: &dyn Fn(&mut Add<'_>),
) -> Result<Vec<f64>, T::Error> {
    let mut largest = vec![0.0_f64; kinds];
    each(&mut |kind, number| largest[kind] = largest[kind].max(number));
    together.largest(&mut largest)?;
    let step = |&largest: &f64| 2_f64.powi((exponent_above(largest) - BITS).clamp(-1000, 900));
    let steps: Vec<f64> = largest.iter().map(step).collect();
    let mut sums = vec![0_u64; kinds];
    each(&mut |kind, number| sums[kind] += whole(number / steps[kind]) as u64);
    together.sum(&mut sums)?;
    let sums = sums.into_iter().zip(steps);
    Ok(sums.map(|(sum, step)| sum as f64 * step).collect())
}
