//! A dense layer for inference: its product with what comes before and after it in one pass.

use super::EncoderError;
use super::activation::{gelu, quick_gelu};
use super::config::Activation;
use super::weights::Weights;
use crate::gemm::packed::{Finish, Panels, packed};
use crate::threads::Threads;

/// What becomes of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// It replaces the output.
    Nothing,
    /// It replaces the output, at least 0 and at most 6.
    Relu6,
    /// It replaces the output, bent by a function.
    Bend(Activation),
    /// It is added to the output.
    Add,
}

/// `x` times a matrix, plus a bias.
pub(super) struct Dense {
    panels: Panels,
    after: After,
}

impl Dense {
    /// A layer from the weights of each output in turn, as PyTorch keeps them.
    pub(super) fn new(inputs: usize, weight: &[f32], bias: &[f32], after: After) -> Self {
        Self {
            panels: Panels::new(inputs, weight, bias),
            after,
        }
    }

    /// The layer `name.weight`, `name.bias`.
    pub(super) fn named(
        weights: &mut Weights<'_>,
        name: &str,
        (inputs, outputs): (usize, usize),
        after: After,
    ) -> Result<Self, EncoderError> {
        let weight = weights.take(&format!("{name}.weight"), &[outputs, inputs])?;
        let bias = weights.take(&format!("{name}.bias"), &[outputs])?;
        Ok(Self::new(inputs, &weight, &bias, after))
    }

    /// Computes rows.
    pub(super) fn run(&self, threads: &Threads, x: &[f32], y: &mut [f32]) {
        let finish = match self.after {
            After::Nothing => Finish::Replace,
            After::Relu6 => Finish::Clamp(0.0, 6.0),
            After::Bend(Activation::Gelu) => Finish::Map(gelu),
            After::Bend(Activation::QuickGelu) => Finish::Map(quick_gelu),
            After::Add => Finish::Add,
        };
        packed(threads, x, &self.panels, y, finish);
    }
}
