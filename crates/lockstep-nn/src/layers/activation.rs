//! Activations that look at one number: leaky ReLU, SiLU, sigmoid and tanh, as PyTorch defines them.
//!
//! All but the first hang on one exponential, the same on every machine ([`exp_of_negative`]), of an argument that is
//! never positive: nothing overflows. The slopes are functions of the input, which is kept anyway.

use super::Parameterless;
use super::gelu::exp_of_negative;
use crate::NnError;
use crate::build::Site;
use crate::dims::Dims;
use crate::graph::{Attribute, Flow, LayerGraph};
use crate::operation::Operation;
use crate::simd::for_each_isa;
use crate::spec::LayerKind;
use crate::threads::{NUMBERS, Threads, pieces, pieces_mut};

/// The settings of a leaky ReLU: `x`, or a part of it below 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeakyRelu {
    /// What a number below 0 is multiplied by.
    pub slope: f64,
}

impl LayerKind for LeakyRelu {
    fn build(&self, site: &mut Site<'_>) -> Result<(), NnError> {
        let slope = self.slope as f32;
        site.chain.push_same(Activation::LeakyRelu { slope });
        Ok(())
    }

    fn write_graph(&self, flow: Flow, graph: &mut LayerGraph<'_>) -> Flow {
        let alpha = [("alpha", Attribute::Float(self.slope as f32))];
        graph.map("LeakyRelu", flow, &alpha)
    }

    fn torch_module(&self) -> String {
        format!("nn.LeakyReLU({:?})", self.slope)
    }

    fn sample() -> (Dims, Self) {
        (Dims::vector(6), Self { slope: 0.01 })
    }
}

/// `x` times its sigmoid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silu;

impl LayerKind for Silu {
    fn build(&self, site: &mut Site<'_>) -> Result<(), NnError> {
        site.chain.push_same(Activation::Silu);
        Ok(())
    }

    fn write_graph(&self, flow: Flow, graph: &mut LayerGraph<'_>) -> Flow {
        let share = graph.part_node("share", "Sigmoid", &[&flow.value], &[]);
        Flow {
            value: graph.node("Mul", &[&flow.value, &share], &[]),
            ..flow
        }
    }

    fn torch_module(&self) -> String {
        "nn.SiLU()".to_owned()
    }

    fn sample() -> (Dims, Self) {
        (Dims::vector(6), Self)
    }
}

/// `1 / (1 + e^-x)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sigmoid;

impl LayerKind for Sigmoid {
    fn build(&self, site: &mut Site<'_>) -> Result<(), NnError> {
        site.chain.push_same(Activation::Sigmoid);
        Ok(())
    }

    fn write_graph(&self, flow: Flow, graph: &mut LayerGraph<'_>) -> Flow {
        graph.map("Sigmoid", flow, &[])
    }

    fn torch_module(&self) -> String {
        "nn.Sigmoid()".to_owned()
    }

    fn sample() -> (Dims, Self) {
        (Dims::vector(6), Self)
    }
}

/// The hyperbolic tangent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tanh;

impl LayerKind for Tanh {
    fn build(&self, site: &mut Site<'_>) -> Result<(), NnError> {
        site.chain.push_same(Activation::Tanh);
        Ok(())
    }

    fn write_graph(&self, flow: Flow, graph: &mut LayerGraph<'_>) -> Flow {
        graph.map("Tanh", flow, &[])
    }

    fn torch_module(&self) -> String {
        "nn.Tanh()".to_owned()
    }

    fn sample() -> (Dims, Self) {
        (Dims::vector(6), Self)
    }
}

/// Which function it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Activation {
    /// `x`, or `slope` times it below 0.
    LeakyRelu {
        /// The slope below 0.
        slope: f32,
    },
    /// `x` times its sigmoid.
    Silu,
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
}

impl Parameterless for Activation {
    fn operation(&self) -> Operation {
        match *self {
            Self::LeakyRelu { slope } => Operation::LeakyRelu { slope },
            Self::Silu => Operation::Silu,
            Self::Sigmoid => Operation::Sigmoid,
            Self::Tanh => Operation::Tanh,
        }
    }

    fn forward(&mut self, threads: &Threads, x: &[f32], y: &mut [f32]) {
        let tiles = (pieces(x, NUMBERS), pieces_mut(y, NUMBERS));
        threads.each(tiles, |_, (x, y)| match *self {
            Self::LeakyRelu { slope } => leak(x, y, slope),
            Self::Silu => silu(x, y),
            Self::Sigmoid => sigmoids(x, y),
            Self::Tanh => tanhs(x, y),
        });
    }

    fn input_gradient(&mut self, threads: &Threads, x: &[f32], dy: &[f32], dx: &mut [f32]) {
        let given = (pieces(x, NUMBERS), pieces(dy, NUMBERS));
        let tiles = (given, pieces_mut(dx, NUMBERS));
        threads.each(tiles, |_, ((x, dy), dx)| match *self {
            Self::LeakyRelu { slope } => leak_gradient(x, dy, dx, slope),
            Self::Silu => silu_gradient(x, dy, dx),
            Self::Sigmoid => sigmoid_gradient(x, dy, dx),
            Self::Tanh => tanh_gradient(x, dy, dx),
        });
    }
}

/// `1 / (1 + e^-x)`, to 1e-7.
#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    let small = exp_of_negative(x.abs());
    let above = 1.0 / (1.0 + small);
    if x < 0.0 { small * above } else { above }
}

/// The hyperbolic tangent, to 2e-7.
#[inline(always)]
fn tanh(x: f32) -> f32 {
    let small = exp_of_negative(2.0 * x.abs());
    let above = (1.0 - small) / (1.0 + small);
    if x < 0.0 { -above } else { above }
}

for_each_isa! {
    fn leak(x: &[f32], y: &mut [f32], slope: f32) {
        for (y, &x) in y.iter_mut().zip(x) {
            *y = if x < 0.0 { slope * x } else { x };
        }
    }

    fn leak_gradient(x: &[f32], dy: &[f32], dx: &mut [f32], slope: f32) {
        for ((dx, &dy), &x) in dx.iter_mut().zip(dy).zip(x) {
            *dx = if x > 0.0 { dy } else { slope * dy };
        }
    }

    fn silu(x: &[f32], y: &mut [f32]) {
        for (y, &x) in y.iter_mut().zip(x) {
            *y = x * sigmoid(x);
        }
    }

    fn silu_gradient(x: &[f32], dy: &[f32], dx: &mut [f32]) {
        for ((dx, &dy), &x) in dx.iter_mut().zip(dy).zip(x) {
            let share = sigmoid(x);
            *dx = dy * (share * (1.0 + x * (1.0 - share)));
        }
    }

    fn sigmoids(x: &[f32], y: &mut [f32]) {
        for (y, &x) in y.iter_mut().zip(x) {
            *y = sigmoid(x);
        }
    }

    fn sigmoid_gradient(x: &[f32], dy: &[f32], dx: &mut [f32]) {
        for ((dx, &dy), &x) in dx.iter_mut().zip(dy).zip(x) {
            let share = sigmoid(x);
            *dx = dy * (share * (1.0 - share));
        }
    }

    fn tanhs(x: &[f32], y: &mut [f32]) {
        for (y, &x) in y.iter_mut().zip(x) {
            *y = tanh(x);
        }
    }

    fn tanh_gradient(x: &[f32], dy: &[f32], dx: &mut [f32]) {
        for ((dx, &dy), &x) in dx.iter_mut().zip(dy).zip(x) {
            let y = tanh(x);
            *dx = dy * (1.0 - y * y);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::check_layer;
    use super::*;
    use crate::layout::Layout;

    const ALL: [Activation; 4] = [
        Activation::LeakyRelu { slope: 0.25 },
        Activation::Silu,
        Activation::Sigmoid,
        Activation::Tanh,
    ];

    fn by_definition(activation: Activation, x: f64) -> f64 {
        let share = 1.0 / (1.0 + (-x).exp());
        match activation {
            Activation::LeakyRelu { slope } if x < 0.0 => f64::from(slope) * x,
            Activation::LeakyRelu { .. } => x,
            Activation::Silu => x * share,
            Activation::Sigmoid => share,
            Activation::Tanh => x.tanh(),
        }
    }

    #[test]
    fn they_agree_with_finite_differences() {
        for mut activation in ALL {
            for (rows, features) in [(1, 1), (3, 7), (5, 40)] {
                let layout = Layout::default();
                let definition = |_: &[f64], x: &[f64]| {
                    let each = x.iter().map(|&x| by_definition(activation, x));
                    each.collect::<Vec<_>>()
                };
                let (layer, layout) = (&mut activation.clone(), &layout);
                check_layer(layer, layout, rows, features, features, &definition);
            }
            let mut none = Vec::new();
            activation.forward(&Threads::default(), &[], &mut none);
        }
    }

    #[test]
    fn they_are_right_to_single_precision_far_out_too() {
        for mut activation in ALL {
            for i in -40_000..=40_000 {
                let x = i as f32 / 400.0;
                let mut y = [f32::NAN];
                activation.forward(&Threads::default(), &[x], &mut y);
                let theirs = by_definition(activation, f64::from(x));
                let error = (f64::from(y[0]) - theirs).abs();
                assert!(
                    error < 3e-7 * theirs.abs().max(1.0),
                    "{activation:?} of {x}"
                );
            }
        }
    }

    #[test]
    fn a_nan_is_not_hidden() {
        for mut activation in ALL {
            let mut y = [0.0_f32];
            activation.forward(&Threads::default(), &[f32::NAN], &mut y);
            assert!(y[0].is_nan(), "{activation:?}");
        }
    }
}
