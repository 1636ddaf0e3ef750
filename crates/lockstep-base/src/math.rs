//! Elementary functions of our own, made of the operations that IEEE 754 fixes to the bit.
//!
//! The system's `exp`, `ln` and `cos` differ between machines in the last bit; these do not. They work
//! in `f64` and are accurate to about 1e-14, far below what an `f32` result can show.

mod softmax;

pub use softmax::Softmax;

use crate::simd::for_each_isa;

const LN_2: f64 = std::f64::consts::LN_2;

/// e to the power `x`.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    exp_by(x, |a, b| a / b)
}

/// e to the power `x`, with divisions by small whole numbers as they are given.
#[inline(always)]
fn exp_by(x: f64, quotient: impl Fn(f64, f64) -> f64) -> f64 {
    // Without branches, so that loops over many numbers can use vectors. What is beyond these becomes one of them.
    let within = x.clamp(-708.0, 709.0);
    let n = (within / LN_2).round();
    // ln 2 in two parts, so that the difference keeps its low bits.
    let r = (within - n * 0.693_147_180_369_123_8) - n * 1.908_214_929_270_587_7e-10;
    // Taylor's series: |r| is at most 0.35, the thirteenth term is below 1e-15.
    let mut sum = 1.0;
    for divisor in DIVISORS {
        sum = 1.0 + quotient(r, divisor) * sum;
    }
    // The low bits of a number that has no room for a fraction are a whole number: the exponent of 2 to the power n.
    let power = f64::from_bits((n + (NO_FRACTION + 1023.0)).to_bits() << 52);
    let found = power * sum;
    let found = if x > 709.0 { f64::INFINITY } else { found };
    if x < -708.0 { 0.0 } else { found }
}

/// What the terms of the series of [`exp`] are divided by, the last term first. A list and not a range: the compiler
/// writes the loop over it out, and can use vectors.
const DIVISORS: [f64; 13] = [
    13.0, 12.0, 11.0, 10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0,
];

/// `a / b` with the bits of the division, by multiplications, which vectors do several times as fast: an estimate, and
/// what it leaves over divided in the same way (Markstein's theorem). For a whole `b` of few digits, and an `a` far
/// from the smallest numbers there are.
#[inline(always)]
fn quotient(a: f64, b: f64) -> f64 {
    let reciprocal = 1.0 / b;
    let estimate = a * reciprocal;
    let left = (-estimate).mul_add(b, a);
    left.mul_add(reciprocal, estimate)
}

/// So large that the next number is 1 larger, also after some thousands are added or taken off.
const NO_FRACTION: f64 = 6_755_399_441_055_744.0;

/// The natural logarithm of a positive, finite, normal `x`; NaN stays, so that a diverged run shows at once.
#[inline(always)]
pub fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = (bits >> 52) as i64 - 1023;
    let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    let is_high = mantissa > std::f64::consts::SQRT_2;
    let mantissa = if is_high { mantissa * 0.5 } else { mantissa };
    let exponent = exponent + i64::from(is_high);
    // ln m = 2 artanh s, with |s| at most 0.172.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let mut sum = 0.0;
    for i in (0..10).rev() {
        sum = sum * square + 1.0 / f64::from(2 * i + 1);
    }
    let found = exponent as f64 * LN_2 + 2.0 * s * sum;
    if x.is_nan() { x } else { found }
}

for_each_isa! {
    /// [`exp`] of each of these numbers.
    pub fn exp_each(numbers: &mut [f64]) {
        for number in numbers {
            *number = exp_by(*number, quotient);
        }
    }

    /// [`ln`] of each of these numbers.
    pub fn ln_each(numbers: &mut [f64]) {
        for number in numbers {
            *number = ln(*number);
        }
    }
}

/// The cosine of pi times `x`, for `x` in 0..=1.
#[inline]
pub fn cos_pi(x: f64) -> f64 {
    // cos(pi x) = -cos(pi (1 - x)) brings the argument to at most pi / 2, where the series is short.
    if x > 0.5 {
        return -cos_pi(1.0 - x);
    }
    let square = (std::f64::consts::PI * x) * (std::f64::consts::PI * x);
    let mut sum = 1.0;
    for i in (1..=11).rev() {
        sum = 1.0 - square / f64::from((2 * i - 1) * 2 * i) * sum;
    }
    sum
}

/// `x` to a whole power, by squaring.
#[inline]
pub fn power(x: f64, mut n: u64) -> f64 {
    let (mut base, mut result) = (x, 1.0);
    while n > 0 {
        if n & 1 == 1 {
            result *= base;
        }
        base *= base;
        n >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(ours: f64, theirs: f64) -> bool {
        (ours - theirs).abs() <= 1e-13 * theirs.abs().max(1e-3)
    }

    #[test]
    fn they_agree_with_the_systems_functions() {
        for i in -7000..7000 {
            let x = f64::from(i) * 0.1;
            assert!(close(exp(x), x.exp()), "exp({x})");
        }
        for i in 1..20_000 {
            let x = f64::from(i) * 0.013;
            assert!(close(ln(x), x.ln()), "ln({x}) = {} not {}", ln(x), x.ln());
        }
        for i in 0..=1000 {
            let x = f64::from(i) / 1000.0;
            assert!(
                (cos_pi(x) - (std::f64::consts::PI * x).cos()).abs() < 1e-14,
                "cos_pi({x})"
            );
        }
        assert!(close(power(0.999, 12_345), 0.999f64.powi(12_345)));
    }

    #[test]
    fn exp_keeps_its_limits() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f64::NEG_INFINITY), 0.0);
        assert_eq!(exp(f64::INFINITY), f64::INFINITY);
        assert!(exp(f64::NAN).is_nan() && ln(f64::NAN).is_nan() && ln(-f64::NAN).is_nan());
    }

    #[test]
    fn quotients_have_the_bits_of_divisions() {
        let mut bits = 1_u64;
        for _ in 0..200_000 {
            bits = bits
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let exponent = 1023 - (bits >> 58);
            let a = f64::from_bits(bits >> 12 | exponent << 52);
            for b in DIVISORS {
                assert_eq!(quotient(a, b).to_bits(), (a / b).to_bits(), "{a} / {b}");
                assert_eq!(quotient(-a, b).to_bits(), (-a / b).to_bits(), "-{a} / {b}");
            }
        }
    }

    #[test]
    fn many_numbers_at_once_come_to_the_bits_of_one_at_a_time() {
        let some = (0..40_000).map(|i| f64::from(i) * 0.037 - 740.0);
        let near_ties = (-1000..1000).map(|i| (f64::from(i) + 0.5) * LN_2);
        let all: Vec<f64> = some.chain(near_ties).collect();
        let bits = |numbers: &[f64]| -> Vec<u64> { numbers.iter().map(|x| x.to_bits()).collect() };
        let one = |function: fn(f64) -> f64, numbers: &[f64]| -> Vec<u64> {
            numbers.iter().map(|&x| function(x).to_bits()).collect()
        };
        let mut exps = all.clone();
        exp_each(&mut exps);
        assert_eq!(bits(&exps), one(exp, &all));
        let positive: Vec<f64> = all.iter().map(|x| x.abs() + 1e-9).collect();
        let mut logarithms = positive.clone();
        ln_each(&mut logarithms);
        assert_eq!(bits(&logarithms), one(ln, &positive));
    }
}
