//! Sums of numbers over all ranks that do not depend on how the numbers are divided.

use crate::Together;
use crate::gradients::exponent_above;

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
    let mut largest = [0.0_f64; KINDS];
    each(&mut |kind, number| largest[kind] = largest[kind].max(number));
    together.largest(&mut largest)?;
    let steps =
        largest.map(|largest| 2_f64.powi((exponent_above(largest) - BITS).clamp(-1000, 900)));
    let mut sums = [0_u64; KINDS];
    each(&mut |kind, number| sums[kind] += (number / steps[kind]).round_ties_even() as u64);
    together.sum(&mut sums)?;
    let mut all = [0.0; KINDS];
    for ((all, sum), step) in all.iter_mut().zip(sums).zip(steps) {
        *all = sum as f64 * step;
    }
    Ok(all)
}
