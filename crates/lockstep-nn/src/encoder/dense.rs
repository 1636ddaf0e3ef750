//! A dense layer for inference: its product with what comes before and after it in one pass.

use super::EncoderError;
use super::activation::{gelu, quick_gelu, relu6};
use super::config::Activation;
use super::weights::Weights;
use crate::buffer::Buffer;
use crate::gemm::{Into, Left, gemm};
use crate::layers::linear::transpose;

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
    inputs: usize,
    outputs: usize,
    /// Inputs x outputs.
    weight: Buffer,
    bias: Buffer,
    after: After,
}

impl Dense {
    /// A layer from the weights of each output in turn, as PyTorch keeps them.
    pub(super) fn new(inputs: usize, weight: &[f32], bias: &[f32], after: After) -> Self {
        let outputs = bias.len();
        let mut turned = Buffer::zeros(inputs * outputs);
        transpose(weight, inputs, &mut turned);
        Self {
            inputs,
            outputs,
            weight: turned,
            bias: bias.into(),
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
    pub(super) fn run(&self, x: &[f32], y: &mut [f32]) {
        let rows = x.len() / self.inputs;
        let mut part = match self.after {
            After::Add => vec![0.0; y.len()],
            _ => Vec::new(),
        };
        let to = match self.after {
            After::Add => &mut part[..],
            _ => &mut *y,
        };
        for row in to.chunks_exact_mut(self.outputs) {
            row.copy_from_slice(&self.bias);
        }
        let shape = (rows, self.outputs, self.inputs);
        gemm(
            shape,
            Left::rows(x, self.inputs),
            &self.weight,
            self.outputs,
            to,
            self.outputs,
            Into::Add,
        );
        match self.after {
            After::Nothing => {}
            After::Relu6 => relu6(y),
            After::Bend(Activation::Gelu) => gelu(y),
            After::Bend(Activation::QuickGelu) => quick_gelu(y),
            After::Add => {
                for (y, x) in y.iter_mut().zip(&part) {
                    *y += x;
                }
            }
        }
    }
}
