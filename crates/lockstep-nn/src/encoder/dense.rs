//! A dense layer for inference: its product with what comes before and after it in one pass.

use super::activation::{gelu, quick_gelu};
use super::config::Activation;
use super::parts::DenseParts;
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
    /// A layer with these weights.
    pub(super) fn new(parts: &DenseParts, after: After) -> Self {
        Self {
            panels: Panels::new(parts.inputs, &parts.weight, &parts.bias),
            after,
        }
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
