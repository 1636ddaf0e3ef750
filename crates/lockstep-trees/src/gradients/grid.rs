//! Multiples of a power of two.

/// Bits of a number on the grid: what an `f32` holds.
const BITS: i32 = 24;
/// Bits of a sum: what an `f64` holds.
const SUM_BITS: i32 = 53;

/// Numbers that are multiples of a step, up to a largest one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grid {
    step: f64,
    per_step: f64,
}

impl Grid {
    /// The finest grid on which sums of so many numbers of at most this size are exact.
    pub fn new(largest: f64, numbers: u64) -> Self {
        let bits_of_count = 64 - numbers.saturating_sub(1).leading_zeros() as i32;
        let bits = BITS.min(SUM_BITS - bits_of_count);
        // Within what powers of two an f64 has, and an f32 of 24 bits below them.
        let exponent = exponent_above(largest).clamp(-100, 127) - bits;
        Self {
            step: power_of_two(exponent),
            per_step: power_of_two(-exponent),
        }
    }

    /// The nearest number on the grid.
    pub fn round(self, number: f64) -> f32 {
        (whole(number * self.per_step) * self.step) as f32
    }

    /// The same, but at least one step: a row that takes part has a second derivative.
    pub fn round_up_from_zero(self, number: f64) -> f32 {
        (whole(number * self.per_step).max(1.0) * self.step) as f32
    }
}

/// The nearest whole number; of two the even one. For numbers of at most 51 bits, which those of a grid are: beside so
/// large a number there is no room for a fraction. That is faster than a call for every number.
pub(crate) fn whole(number: f64) -> f64 {
    (number + NO_FRACTION) - NO_FRACTION
}

/// The same of a number that is not below 0.
pub(crate) fn counted(number: f64) -> u64 {
    (number + NO_FRACTION)
        .to_bits()
        .wrapping_sub(NO_FRACTION.to_bits())
}

const NO_FRACTION: f64 = 6_755_399_441_055_744.0;

/// The exponent of the smallest power of two that is not below a number; 0 for 0.
pub(crate) fn exponent_above(number: f64) -> i32 {
    if number <= 0.0 || !number.is_finite() {
        return 0;
    }
    let bits = number.to_bits();
    let exponent = (bits >> 52) as i32 - 1023;
    match bits & ((1 << 52) - 1) {
        0 => exponent,
        _ => exponent + 1,
    }
}

fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::{Grid, counted, whole};

    #[test]
    fn whole_numbers_are_the_nearest_and_of_two_the_even_one() {
        for i in -4000..4000 {
            let number = f64::from(i) * 0.125 * 2_f64.powi(i % 30);
            assert_eq!(whole(number), number.round_ties_even(), "{number}");
            let size = number.abs();
            assert_eq!(counted(size), size.round_ties_even() as u64, "{size}");
        }
        assert_eq!(whole(2_f64.powi(50) + 0.5), 2_f64.powi(50));
    }

    #[test]
    fn the_grid_is_as_fine_as_exact_sums_allow() {
        let few = Grid::new(1.0, 1000);
        assert_eq!(few.step, 2_f64.powi(-24));
        assert_eq!(few.round(1.0), 1.0);
        assert_eq!(few.round(2_f64.powi(-25)), 0.0);
        assert_eq!(few.round_up_from_zero(0.0), 2_f32.powi(-24));
        let many = Grid::new(1.0, 1 << 31);
        assert_eq!(many.step, 2_f64.powi(-22));
        assert_eq!(Grid::new(5.0, 10).step, 2_f64.powi(3 - 24));
        assert_eq!(Grid::new(4.0, 10).step, 2_f64.powi(2 - 24));
    }
}
