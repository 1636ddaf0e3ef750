//! `x` times the share of a standard normal distribution that lies below `x`: the exact GELU, PyTorch's
//! default.
//!
//! That share and its density hang on the same exponential, so one of it serves both passes. The
//! system's `erf` differs between machines; this one is made of additions, multiplications and one
//! division in single precision, vectorises, and is right to 2e-7.

use super::Parameterless;
use crate::NnError;
use crate::build::Site;
use crate::dims::Dims;
use crate::graph::{Flow, GraphWriter, LayerGraph, Value};
use crate::operation::Operation;
use crate::simd::for_each_isa;
use crate::spec::LayerKind;
use crate::threads::{NUMBERS, Threads, pieces, pieces_mut};

/// The Gaussian error linear unit. Its slope is a function of the input, which is kept anyway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gelu;

impl LayerKind for Gelu {
    fn build(&self, site: &mut Site<'_>) -> Result<(), NnError> {
        site.chain.push_same(Gelu);
        Ok(())
    }

    fn write_graph(&self, flow: Flow, graph: &mut LayerGraph<'_>) -> Flow {
        Flow {
            value: Gelu::write(graph.graph, graph.name, &flow.value),
            ..flow
        }
    }

    fn torch_module(&self) -> String {
        "nn.GELU()".to_owned()
    }

    fn sample() -> (Dims, Self) {
        (Dims::vector(6), Self)
    }
}

impl Gelu {
    /// Writes it into a graph under this name, by the error function.
    pub fn write(graph: &mut dyn GraphWriter, name: &str, value: &str) -> Value {
        let part = |part: &str| format!("{name}.{part}");
        let root = graph.numbers(&part("root"), &[1], &[std::f32::consts::SQRT_2]);
        let one = graph.numbers(&part("one"), &[1], &[1.0]);
        let half = graph.numbers(&part("half"), &[1], &[0.5]);
        let scaled = graph.node("Div", &part("scaled"), &[value, &root], &[]);
        let erf = graph.node("Erf", &part("erf"), &[&scaled], &[]);
        let twice = graph.node("Add", &part("twice"), &[&erf, &one], &[]);
        let share = graph.node("Mul", &part("share"), &[&twice, &half], &[]);
        graph.node("Mul", name, &[value, &share], &[])
    }
}

impl Parameterless for Gelu {
    fn operation(&self) -> Operation {
        Operation::Gelu
    }

    fn forward(&mut self, threads: &Threads, x: &[f32], y: &mut [f32]) {
        let tiles = (pieces(x, NUMBERS), pieces_mut(y, NUMBERS));
        threads.each(tiles, |_, (x, y)| gelu(x, y));
    }

    fn input_gradient(&mut self, threads: &Threads, x: &[f32], dy: &[f32], dx: &mut [f32]) {
        let given = (pieces(x, NUMBERS), pieces(dy, NUMBERS));
        let tiles = (given, pieces_mut(dx, NUMBERS));
        threads.each(tiles, |_, ((x, dy), dx)| input_gradient(x, dy, dx));
    }
}

for_each_isa! {
    fn gelu(x: &[f32], y: &mut [f32]) {
        for (y, &x) in y.iter_mut().zip(x) {
            *y = x * normal(x).0;
        }
    }

    fn input_gradient(x: &[f32], dy: &[f32], dx: &mut [f32]) {
        for ((dx, &dy), &x) in dx.iter_mut().zip(dy).zip(x) {
            let (share, density) = normal(x);
            *dx = dy * (share + x * density);
        }
    }
}

/// How much of a standard normal distribution lies below `x`, and its density at `x`.
#[inline(always)]
pub(crate) fn normal(x: f32) -> (f32, f32) {
    /// 1 / sqrt(2 pi).
    const PEAK: f32 = 0.398_942_3;
    /// The share beyond z is `e^(-z^2 / 2)` times a polynomial in `1 / (1 + SQUEEZE z)` without a
    /// constant term. These are the minimax coefficients for z in 0..14, relative error 3.2e-8.
    const SQUEEZE: f32 = 0.35;
    const TAIL: [f32; 9] = [
        0.139_621_4,
        0.139_861_87,
        0.119_832_87,
        0.105_507_98,
        -0.023_109_782,
        0.159_174_08,
        -0.255_714_18,
        0.143_971_66,
        -0.029_145_924,
    ];
    let z = x.abs();
    let bell = exp_of_negative(0.5 * x * x);
    let t = 1.0 / (1.0 + SQUEEZE * z);
    let mut sum = 0.0;
    for &coefficient in TAIL.iter().rev() {
        sum = (sum + coefficient) * t;
    }
    let beyond = sum * bell;
    (if x < 0.0 { beyond } else { 1.0 - beyond }, PEAK * bell)
}

/// e to the power `-x` for `x` of at least 0, to 6e-8; beyond 87, where it is no normal number any more,
/// e to the power -87.
#[inline(always)]
pub(crate) fn exp_of_negative(x: f32) -> f32 {
    /// Adding this leaves the nearest whole number in the low bits.
    const WHOLE: f32 = 12_582_912.0;
    /// ln 2 in two parts, the first so short that its product with a small whole number is exact.
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    /// e^r = 1 + r + r^2 times this polynomial, for |r| up to half of ln 2 (Cephes' `expf`).
    const SERIES: [f32; 6] = [
        0.5,
        0.166_666_65,
        4.166_579_6e-2,
        8.333_452e-3,
        1.398_2e-3,
        1.987_569_1e-4,
    ];
    // NaN is not above 87 and stays.
    let x = if x > 87.0 { -87.0 } else { -x };
    let shifted = x * std::f32::consts::LOG2_E + WHOLE;
    let n = shifted - WHOLE;
    let r = (x - n * LN_2[0]) - n * LN_2[1];
    let mut sum = 0.0;
    for &coefficient in SERIES.iter().rev() {
        sum = sum * r + coefficient;
    }
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000));
    power * (1.0 + (r + r * r * sum))
}

#[cfg(test)]
mod tests {
    use super::super::check::check_layer;
    use super::*;
    use crate::layout::Layout;

    /// The share below `x` by a series of positive terms, which loses nothing to cancellation.
    fn share_below(x: f64) -> f64 {
        let (mut term, mut sum, mut odd) = (x, 0.0, 1.0);
        while f64::abs(term) > 1e-18 {
            sum += term;
            odd += 2.0;
            term *= x * x / odd;
        }
        0.5 + sum * (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt()
    }

    #[test]
    fn it_agrees_with_finite_differences() {
        for (rows, features) in [(1, 1), (3, 7), (5, 40)] {
            let layout = Layout::default();
            check_layer(&mut Gelu, &layout, rows, features, features, &|_, x| {
                x.iter().map(|&x| x * share_below(x)).collect()
            });
        }
    }

    #[test]
    fn share_and_density_are_right_to_single_precision() {
        for i in -80_000..=80_000 {
            let x = i as f32 / 10_000.0;
            let (share, density) = normal(x);
            let wide = f64::from(x);
            let theirs = share_below(wide);
            assert!((f64::from(share) - theirs).abs() < 2e-7, "share at {x}");
            let theirs = (-0.5 * wide * wide).exp() / std::f64::consts::TAU.sqrt();
            assert!((f64::from(density) - theirs).abs() < 1e-7, "density at {x}");
        }
    }

    #[test]
    fn the_far_tails_are_0_and_the_identity_and_nan_is_not_hidden() {
        let x = [-100.0, -20.0, 20.0, 1e30, f32::NAN];
        let mut y = [0.5; 5];
        gelu(&x, &mut y);
        assert!(y[0].abs() < 1e-30 && y[1].abs() < 1e-30, "{y:?}");
        assert_eq!(y[2..4], x[2..4]);
        assert!(y[4].is_nan());
        let mut dx = [0.5; 5];
        input_gradient(&x, &[1.0; 5], &mut dx);
        assert!(dx[0].abs() < 1e-30 && dx[1].abs() < 1e-30, "{dx:?}");
        assert_eq!(dx[2..4], [1.0, 1.0]);
        assert!(dx[4].is_nan());
    }
}
