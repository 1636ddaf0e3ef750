//! The functions between a transformer block's products, in place.

use crate::layers::gelu::{exp_of_negative, normal};
use crate::simd::for_each_isa;

for_each_isa! {
    /// `x` times the logistic function of `1.702 x`.
    pub(super) fn quick_gelu(x: &mut [f32]) {
        for x in x {
            let z = 1.702 * *x;
            // Of the magnitude, so that the exponential never overflows.
            let e = exp_of_negative(z.abs());
            *x = *x * (if z < 0.0 { e } else { 1.0 }) / (1.0 + e);
        }
    }

    /// `x` times the share of a standard normal distribution below `x`.
    pub(super) fn gelu(x: &mut [f32]) {
        for x in x {
            *x *= normal(*x).0;
        }
    }

    /// `x`, but at least 0 and at most 6.
    pub(super) fn relu6(x: &mut [f32]) {
        for x in x {
            // NaN is neither, and stays.
            let low = if 0.0 > *x { 0.0 } else { *x };
            *x = if 6.0 < low { 6.0 } else { low };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_gelu_is_right_to_single_precision() {
        let x: Vec<f32> = (-3000..3000).map(|i| i as f32 / 100.0).collect();
        let mut y = x.clone();
        quick_gelu(&mut y);
        for (&x, &y) in x.iter().zip(&y) {
            let wide = f64::from(x);
            let exact = wide / (1.0 + (-1.702 * wide).exp());
            // The exponential's argument is rounded, which counts the more the larger it is.
            let most = 2e-7 * exact.abs() * (1.0 + wide.abs());
            assert!(
                (f64::from(y) - exact).abs() <= most,
                "at {x}: {y}, not {exact}"
            );
        }
    }

    #[test]
    fn nan_is_not_hidden_and_far_tails_are_finite() {
        for f in [quick_gelu, gelu, relu6] {
            let mut x = [f32::NAN, -1e30, 1e30];
            f(&mut x);
            assert!(x[0].is_nan() && x[1].abs() < 1e-6 && x[2] > 5.0, "{x:?}");
        }
        let mut x = [-1.0, 3.0, 6.0, 7.0];
        relu6(&mut x);
        assert_eq!(x, [0.0, 3.0, 6.0, 6.0]);
    }
}
