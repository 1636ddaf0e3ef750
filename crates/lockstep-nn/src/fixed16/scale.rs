//! Scales: a power of two for all numbers that are sliced together, from the largest magnitude among them.

use crate::simd::for_each_isa;
use crate::threads::{NUMBERS, Threads, pieces};
use std::sync::atomic::{AtomicU32, Ordering};

/// The largest multiple of the scale that both slices can hold.
#[cfg(test)]
pub(super) const LARGEST: i32 = 32_639;

/// The least exponent: outputs of two operands that have it are not subnormal.
const LEAST: i32 = -52;

/// The exponent e of numbers of which the largest magnitude is m: the least for which all are at most
/// [`LARGEST`] multiples of 2^(e-15), once they are rounded. None if m is infinite or not a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scale(Option<i32>);

impl Default for Scale {
    fn default() -> Self {
        Self(Some(LEAST))
    }
}

impl Scale {
    /// The scale of numbers whose largest magnitude has these bits.
    fn of_bits(largest: u32) -> Self {
        if largest >= f32::INFINITY.to_bits() {
            return Self(None);
        }
        Self(Some((((largest + 0x1_0100) >> 23) as i32 - 126).max(LEAST)))
    }

    /// The scale of these numbers.
    pub(crate) fn of(numbers: &[f32]) -> Self {
        Self::of_bits(largest(numbers))
    }

    /// The same, on these threads.
    pub(crate) fn on(threads: &Threads, numbers: &[f32]) -> Self {
        let most = AtomicU32::new(0);
        threads.each(pieces(numbers, NUMBERS), |_, numbers| {
            most.fetch_max(largest(numbers), Ordering::Relaxed);
        });
        Self::of_bits(most.into_inner())
    }

    /// What numbers are multiplied by before they are rounded. If one of them is infinite or not a number, all are
    /// slices of anything, since the outputs do not depend on them.
    pub(crate) fn by(self) -> f32 {
        self.0.map_or(0.0, |e| power(15 - e))
    }

    /// What sums of products are multiplied by, once for each operand.
    pub(crate) fn factor(self) -> f32 {
        self.0.map_or(f32::NAN, |e| power(e - 11))
    }
}

/// 2^e.
fn power(e: i32) -> f32 {
    f32::from_bits(((e + 127) as u32) << 23)
}

for_each_isa! {
    /// The bits of the largest magnitude. As integers they are in the order of the numbers, with infinity and what is
    /// not a number above all others; so the largest does not depend on an order.
    fn largest(numbers: &[f32]) -> u32 {
        let magnitude = |x: &f32| x.to_bits() & 0x7fff_ffff;
        let larger = |most: [u32; 16], group: &[f32; 16]| -> [u32; 16] {
            std::array::from_fn(|i| most[i].max(magnitude(&group[i])))
        };
        // Several chains, so that none has to wait for itself.
        let mut most = [[0; 16]; 4];
        let (groups, rest) = numbers.as_chunks::<64>();
        for group in groups {
            let [a, b, c, d] = most;
            let (parts, _) = group.as_chunks::<16>();
            most = [larger(a, &parts[0]), larger(b, &parts[1]), larger(c, &parts[2]), larger(d, &parts[3])];
        }
        let rest = rest.iter().map(magnitude);
        most.into_iter().flatten().chain(rest).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_is_the_least_under_which_all_numbers_fit() {
        let multiples = |x: f32, e: i32| (x * power(15 - e)).round_ties_even().abs();
        for bits in (0..f32::INFINITY.to_bits()).step_by(65_537 / 8) {
            let x = f32::from_bits(bits);
            let e = Scale::of(&[0.0, -x]).0.unwrap();
            assert!(multiples(x, e) <= LARGEST as f32, "{x:e} with {e}");
            if e > LEAST {
                assert!(multiples(x, e - 1) > LARGEST as f32, "{x:e} with {e}");
            }
        }
        assert_eq!(Scale::of(&[0.0; 3]), Scale(Some(LEAST)));
        assert_eq!(Scale::of(&[]), Scale::default());
        for odd in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -f32::NAN] {
            assert_eq!(Scale::of(&[1.0, odd, 2.0]), Scale(None));
        }
    }

    #[test]
    fn the_largest_of_many_is_found_wherever_it_lies_on_any_threads() {
        let threads = Threads::with_threads(3).unwrap();
        for at in [0, 63, 64, 40_000, 99_999] {
            let mut numbers = vec![0.25; 100_000];
            numbers[at] = -3.0;
            assert_eq!(Scale::of(&numbers), Scale::of(&[3.0]));
            assert_eq!(Scale::on(&threads, &numbers), Scale::of(&[3.0]));
        }
    }
}
