//! Layer normalisation: each token to mean 0 and variance 1, then scaled and shifted a channel.

use super::parts::NormParts;
use crate::simd::for_each_isa;
use crate::threads::{Threads, pieces, pieces_mut, rows_of_a_tile};

/// Sums run in so many lanes side by side, whatever the machine's vectors are: the order of a sum is a
/// function of its length.
pub(super) const LANES: usize = 16;

/// A layer normalisation.
pub(super) struct Norm(NormParts);

impl Norm {
    pub(super) fn new(parts: NormParts) -> Self {
        Self(parts)
    }

    /// Normalises tokens.
    pub(super) fn run(&self, threads: &Threads, x: &[f32], y: &mut [f32]) {
        let NormParts {
            scale,
            shift,
            epsilon,
        } = &self.0;
        let width = scale.len();
        let numbers = rows_of_a_tile(width) * width;
        let tiles = (pieces(x, numbers), pieces_mut(y, numbers));
        threads.each(tiles, |_, (x, y)| {
            normalise(scale, shift, *epsilon, x, y);
        });
    }
}

for_each_isa! {
    fn normalise(scale: &[f32], shift: &[f32], epsilon: f32, x: &[f32], y: &mut [f32]) {
        let width = scale.len();
        for (x, y) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)) {
            let mean = sum_of(x, |x| x) / width as f32;
            let variance = sum_of(x, |x| (x - mean) * (x - mean)) / width as f32;
            let factor = 1.0 / (variance + epsilon).sqrt();
            for (((y, &x), &scale), &shift) in y.iter_mut().zip(x).zip(scale).zip(shift) {
                *y = (x - mean) * factor * scale + shift;
            }
        }
    }
}

/// The sum of a function of numbers, in [`LANES`] lanes and then in a tree.
#[inline(always)]
pub(super) fn sum_of(x: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let groups = x.chunks_exact(LANES);
    let rest = groups.remainder();
    for group in groups {
        for (lane, &x) in lanes.iter_mut().zip(group) {
            *lane += f(x);
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane += f(x);
    }
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
        half /= 2;
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_any_width_are_normalised_as_defined() {
        for width in [1, 2, 15, 16, 17, 48, 100, 768] {
            let x: Vec<f32> = (0..3 * width)
                .map(|i| ((i * 37) % 101) as f32 / 10.0 - 3.0)
                .collect();
            let scale: Vec<f32> = (0..width).map(|i| 1.0 + i as f32 / 100.0).collect();
            let shift: Vec<f32> = (0..width).map(|i| i as f32 / 50.0).collect();
            let mut y = vec![0.0; x.len()];
            normalise(&scale, &shift, 1e-5, &x, &mut y);
            for (x, y) in x.chunks(width).zip(y.chunks(width)) {
                let wide: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
                let n = width as f64;
                let mean = wide.iter().sum::<f64>() / n;
                let variance = wide.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
                for i in 0..width {
                    let exact = (wide[i] - mean) / (variance + 1e-5).sqrt() * f64::from(scale[i])
                        + f64::from(shift[i]);
                    assert!(
                        (f64::from(y[i]) - exact).abs() < 2e-5,
                        "{width}: {}, not {exact}",
                        y[i]
                    );
                }
            }
        }
    }
}
