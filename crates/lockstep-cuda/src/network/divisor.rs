//! Numbers that a kernel divides by often: a GPU has no instruction that divides.

use crate::arguments::arguments;
use crate::error::CudaError;

arguments! {
    /// What a kernel needs to divide by a number: `(high(x * multiplier) + x) >> shift`, where `high` is the upper half of
    /// the product.
    pub(crate) struct Divisor {
        by: u32,
        multiplier: u32,
        shift: u32,
    }
}

/// Numbers that are divided are below this, and so are all that a kernel counts.
const MOST: usize = 1 << 31;

/// Refuses more numbers than a kernel can count: so many times `numbers`.
pub(crate) fn check_count(what: &str, times: usize, numbers: usize) -> Result<(), CudaError> {
    match times.saturating_mul(numbers) < MOST {
        true => Ok(()),
        false => Err(CudaError::Unsupported {
            what: format!("{what} of {numbers} numbers, {times} at a time"),
        }),
    }
}

impl Divisor {
    /// Whether it is for 1, by which nothing is parted.
    pub(crate) fn is_one(&self) -> bool {
        self.by == 1
    }

    /// For numbers below 2^31. Nothing is divided by 0, which stands for 1 here.
    pub(crate) fn new(by: usize) -> Self {
        let by = by.max(1) as u32;
        let shift = u32::BITS - (by - 1).leading_zeros();
        let rest = (1u64 << shift) - u64::from(by);
        let multiplier = (rest << 32) / u64::from(by) + 1;
        Self {
            by,
            multiplier: multiplier as u32,
            shift,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_multiplication_and_a_shift_divide() {
        let most = MOST as u32 - 1;
        let near = |x: u32| [x.saturating_sub(1), x, x + 1];
        for by in (1..2000).chain([4095, 65_537, 1_000_003, 1 << 30, most]) {
            let d = Divisor::new(by as usize);
            let quotients = [1, 2, 3, 7, most / by / 2, most / by];
            let quotients = quotients.into_iter().filter(|&q| q <= most / by);
            let numbers = quotients.flat_map(|q| near(q * by));
            for x in numbers.chain([0, 1, 12_345, most]).filter(|&x| x <= most) {
                let high = (u64::from(x) * u64::from(d.multiplier)) >> 32;
                let found = (high as u32 + x) >> d.shift;
                assert_eq!(found, x / by, "{x} / {by}");
            }
        }
    }
}
