//! Elementary functions of our own, made of the operations that IEEE 754 fixes to the bit.
//!
//! The system's `exp`, `ln` and `cos` differ between machines in the last bit; these do not. They work
//! in `f64` and are accurate to about 1e-14, far below what an `f32` result can show.

const LN_2: f64 = std::f64::consts::LN_2;

/// e to the power `x`.
pub fn exp(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x > 709.0 {
        return f64::INFINITY;
    }
    if x < -708.0 {
        return 0.0;
    }
    let n = (x / LN_2).round();
    // ln 2 in two parts, so that the difference keeps its low bits.
    let r = (x - n * 0.693_147_180_369_123_8) - n * 1.908_214_929_270_587_7e-10;
    // Taylor's series: |r| is at most 0.35, the thirteenth term is below 1e-15.
    let mut sum = 1.0;
    for i in (1..=13).rev() {
        sum = 1.0 + r / f64::from(i) * sum;
    }
    f64::from_bits(((n as i64 + 1023) as u64) << 52) * sum
}

/// The natural logarithm of a positive, finite, normal `x`.
pub fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    // ln m = 2 artanh s, with |s| at most 0.172.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let mut sum = 0.0;
    for i in (0..10).rev() {
        sum = sum * square + 1.0 / f64::from(2 * i + 1);
    }
    exponent as f64 * LN_2 + 2.0 * s * sum
}

/// The cosine of pi times `x`, for `x` in 0..=1.
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
        assert!(exp(f64::NAN).is_nan());
    }
}
