//! Quantiles of numbers that are divided into parts, over the numbers of all ranks.
//!
//! A quantile is found by counting digits from the highest on, as [cuts](crate::cuts) are. Counts and weights are added up
//! as whole numbers, so it does not matter which rank has which number.

use crate::Together;
use crate::cuts::{key, value};
use crate::gradients::exponent_above;

/// The part of a number that does not count.
pub(crate) const NO_PART: u32 = u32::MAX;
/// Digits of a count.
const DIGITS: usize = 256;
/// Bits of the largest weight: a sum of 2^31 of them fits a `u64`.
const WEIGHT_BITS: i32 = 32;

/// The numbers of a rank.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DividedNumbers<'a> {
    pub(crate) numbers: &'a [f32],
    /// The part of each.
    pub(crate) parts: &'a [u32],
    /// How much each counts; all alike without.
    pub(crate) weights: Option<&'a [f32]>,
}

/// A number that is looked for: what is known of its key, and how much lies below it among those that begin so.
#[derive(Debug, Clone, Copy)]
struct Sought {
    part: usize,
    prefix: u32,
    below: u64,
}

/// The quantile `share` of each of so many parts, as XGBoost has it: between two numbers that count alike it is
/// interpolated, and with weights it is the first number at which their sum reaches the share. A part that nothing counts in
/// has none.
///
/// # Errors
/// When a peer is lost.
pub(crate) fn quantiles<T: Together>(
    of: DividedNumbers<'_>,
    parts: usize,
    share: f64,
    together: &T,
) -> Result<Vec<Option<f32>>, T::Error> {
    let weights = whole_weights(of.weights, together)?;
    let weight = |row: usize| weights.as_ref().map_or(1, |weights| weights[row]);
    let mut totals = vec![0_u64; parts];
    for (row, &part) in of.parts.iter().enumerate() {
        if part != NO_PART {
            totals[part as usize] += weight(row);
        }
    }
    together.sum(&mut totals)?;
    let places: Vec<Option<Place>> = (totals.iter())
        .map(|&total| Place::of(share, total, weights.is_some()))
        .collect();
    let mut sought = Vec::new();
    let mut first = Vec::with_capacity(parts + 1);
    for (part, place) in places.iter().enumerate() {
        first.push(sought.len());
        let ranks = place.iter().flat_map(|place| place.ranks());
        sought.extend(ranks.map(|below| Sought {
            part,
            prefix: 0,
            below,
        }));
    }
    first.push(sought.len());
    for shift in [24, 16, 8, 0] {
        let mut counts = vec![0_u64; sought.len() * DIGITS];
        for (row, (&number, &part)) in of.numbers.iter().zip(of.parts).enumerate() {
            if part == NO_PART {
                continue;
            }
            let key = key(number);
            for at in first[part as usize]..first[part as usize + 1] {
                if (u64::from(key) >> (shift + 8)) as u32 == sought[at].prefix {
                    counts[at * DIGITS + (key >> shift) as usize % DIGITS] += weight(row);
                }
            }
        }
        together.sum(&mut counts)?;
        for (sought, counts) in sought.iter_mut().zip(counts.chunks_exact(DIGITS)) {
            let mut digit = 0;
            while sought.below >= counts[digit] {
                sought.below -= counts[digit];
                digit += 1;
            }
            sought.prefix = sought.prefix << 8 | digit as u32;
        }
    }
    let mut found = vec![None; parts];
    for sought in sought {
        let number = value(sought.prefix);
        let place = places[sought.part];
        found[sought.part] = Some(match (found[sought.part], place) {
            (Some(lower), Some(place)) => place.between(lower, number),
            _ => number,
        });
    }
    Ok(found)
}

/// Where a quantile lies: at a number, or between it and the next.
#[derive(Debug, Clone, Copy)]
struct Place {
    below: u64,
    /// How far it is to the next number.
    to_next: Option<f64>,
}

impl Place {
    fn of(share: f64, total: u64, weighted: bool) -> Option<Self> {
        if total == 0 {
            return None;
        }
        let at = |below| Self {
            below,
            to_next: None,
        };
        if weighted {
            let reached = (share * total as f64).ceil() as u64;
            return Some(at(reached.clamp(1, total) - 1));
        }
        let place = share * (total as f64 + 1.0);
        Some(match place {
            place if place <= 1.0 => at(0),
            place if place >= total as f64 => at(total - 1),
            place => Self {
                below: place as u64 - 1,
                to_next: Some(place - place.floor()),
            },
        })
    }

    /// How much lies below each number that is needed.
    fn ranks(self) -> impl Iterator<Item = u64> {
        let next = self.to_next.map(|_| self.below + 1);
        std::iter::once(self.below).chain(next)
    }

    fn between(self, lower: f32, upper: f32) -> f32 {
        let to_next = self.to_next.unwrap_or(0.0);
        (f64::from(lower) + to_next * f64::from(upper - lower)) as f32
    }
}

/// Weights as multiples of a power of two that is the same on all ranks.
fn whole_weights<T: Together>(
    weights: Option<&[f32]>,
    together: &T,
) -> Result<Option<Vec<u64>>, T::Error> {
    let Some(weights) = weights else {
        return Ok(None);
    };
    let mut largest = [weights.iter().copied().fold(0.0, f32::max).into()];
    together.largest(&mut largest)?;
    let step = 2_f64.powi(exponent_above(largest[0]) - WEIGHT_BITS);
    let whole = |&weight: &f32| (f64::from(weight) / step).round_ties_even() as u64;
    Ok(Some(weights.iter().map(whole).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Alone;
    use proptest::prelude::*;

    /// XGBoost's definition, of numbers in order.
    fn by_sorting(numbers: &[f32], share: f64) -> Option<f32> {
        let mut sorted = numbers.to_vec();
        sorted.sort_by(f32::total_cmp);
        let n = sorted.len() as f64;
        let last = *sorted.last()?;
        if share <= 1.0 / (n + 1.0) {
            return Some(sorted[0]);
        }
        if share >= n / (n + 1.0) {
            return Some(last);
        }
        let x = share * (n + 1.0);
        let k = x.floor() - 1.0;
        let (v0, v1) = (sorted[k as usize], sorted[k as usize + 1]);
        Some((f64::from(v0) + ((x - 1.0) - k) * f64::from(v1 - v0)) as f32)
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted_numbers(
            numbers in prop::collection::vec((-1e3_f32..1e3, 0_u32..4), 0..300),
            share in 0.0_f64..1.0,
        ) {
            let (numbers, parts): (Vec<f32>, Vec<u32>) = numbers.into_iter().unzip();
            let parts: Vec<u32> = parts.into_iter().map(|part| if part == 3 { NO_PART } else { part }).collect();
            let of = DividedNumbers { numbers: &numbers, parts: &parts, weights: None };
            let Ok(found) = quantiles(of, 3, share, &Alone);
            for (part, found) in found.into_iter().enumerate() {
                let own: Vec<f32> = numbers.iter().zip(&parts).filter(|one| *one.1 == part as u32).map(|one| *one.0).collect();
                let expected = by_sorting(&own, share);
                let near = found.unwrap_or(0.0) - expected.unwrap_or(0.0);
                prop_assert!(found.is_some() == expected.is_some() && near.abs() < 1e-3, "{found:?} {expected:?}");
            }
        }

        #[test]
        fn a_weighted_quantile_is_where_the_sum_of_weights_reaches_the_share(
            numbers in prop::collection::vec((-1e3_f32..1e3, 0_u8..9), 1..100),
            share in 0.01_f64..1.0,
        ) {
            let (numbers, weights): (Vec<f32>, Vec<u8>) = numbers.into_iter().unzip();
            let weights: Vec<f32> = weights.into_iter().map(f32::from).collect();
            let parts = vec![0; numbers.len()];
            let of = DividedNumbers { numbers: &numbers, parts: &parts, weights: Some(&weights) };
            let Ok(found) = quantiles(of, 1, share, &Alone);
            let all: f32 = weights.iter().sum();
            prop_assert_eq!(found[0].is_some(), all > 0.0);
            if let Some(found) = found[0] {
                let up_to = |most: &dyn Fn(f32) -> bool| -> f64 {
                    numbers.iter().zip(&weights).filter(|one| most(*one.0)).map(|one| f64::from(*one.1)).sum()
                };
                let wanted = share * f64::from(all);
                prop_assert!(up_to(&|number| number <= found) >= wanted - 1e-6);
                prop_assert!(up_to(&|number| number < found) < wanted + 1e-6);
            }
        }
    }
}
