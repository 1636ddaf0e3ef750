//! Losses.

use super::pass::Pass;
use super::step::BatchMemory;
use super::targets::TargetRows;
use crate::arguments::{Pointer, arguments};
use crate::kernels::{Kernel, LOSS};
use crate::launch::Launch;
use crate::rows::TargetShape;
use lockstep_nn::Loss;

arguments! {
    struct LossRows {
        scores: Pointer<f32>,
        gradient: Pointer<f32>,
        targets: TargetRows,
        losses: Pointer<f64>,
        correct: Pointer<u32>,
        rows: u32,
        outputs: u32,
        scale: f64,
        setting: f64,
    }
}

/// Threads of a block, and rows that it has: one a warp.
const THREADS: u32 = 128;
const ROWS_OF_BLOCK: usize = 128 / 32;

/// The kernel of a loss, and what the loss hangs on.
pub(crate) struct LossKernel {
    kernel: Kernel<LossRows>,
    setting: f64,
    has_head: bool,
}

impl LossKernel {
    /// Of targets that count in this shape.
    pub(crate) fn new(loss: Loss, shape: Option<&TargetShape>) -> Self {
        let (name, setting) = match loss {
            Loss::CrossEntropy if shape.is_some() => ("shaped_cross_entropy", 0.0),
            Loss::CrossEntropy => ("cross_entropy", 0.0),
            Loss::SquaredError => ("squared_error", 0.0),
            Loss::BinaryCrossEntropy => ("binary_cross_entropy", 0.0),
            Loss::AbsoluteError => ("absolute_error", 0.0),
            Loss::Huber { delta } => ("huber", delta),
            Loss::Quantile { share } => ("quantile", share),
            Loss::Focal { gamma } => ("focal", gamma),
        };
        Self {
            kernel: Kernel::new(&LOSS, name, THREADS),
            setting,
            has_head: loss == Loss::CrossEntropy && shape.is_none(),
        }
    }

    /// Whether there is a kernel that computes it together with the last layer.
    pub(crate) fn has_head(&self) -> bool {
        self.has_head
    }
}

/// What the loss of a pass is computed of.
pub(crate) struct LossPass<'a> {
    pub(crate) kernel: &'a LossKernel,
    pub(crate) batch: &'a BatchMemory,
    pub(crate) targets: TargetRows,
}

impl LossPass<'_> {
    /// Appends what computes the loss of every row and the gradient by its scores.
    pub(crate) fn push(&self, pass: &mut Pass<'_>) {
        let (batch, rows) = (self.batch, pass.rows);
        let outputs = batch.scores.len() / batch.losses.len().max(1);
        let arguments = LossRows {
            scores: batch.scores.pointer(),
            gradient: batch.delta.pointer(),
            targets: self.targets,
            losses: batch.losses.pointer(),
            correct: batch.correct.pointer(),
            rows: rows as u32,
            outputs: outputs as u32,
            scale: 1.0 / pass.samples as f64,
            setting: self.kernel.setting,
        };
        let blocks = [rows.div_ceil(ROWS_OF_BLOCK), 1, 1];
        pass.push(Launch::new(&self.kernel.kernel, blocks, arguments));
    }
}
