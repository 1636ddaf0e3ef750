//! Losses.

use super::pass::Pass;
use super::step::BatchMemory;
use crate::arguments::{Pointer, arguments};
use crate::error::CudaError;
use crate::kernels::{Kernel, LOSS};
use crate::launch::Launch;
use lockstep_nn::Loss;

arguments! {
    struct CrossEntropy {
        scores: Pointer<f32>,
        gradient: Pointer<f32>,
        classes: Pointer<u32>,
        losses: Pointer<f64>,
        correct: Pointer<u32>,
        rows: u32,
        outputs: u32,
        scale: f64,
    }
}

const CROSS_ENTROPY: Kernel<CrossEntropy> = Kernel::new(&LOSS, "cross_entropy", 128);

/// Rows that a block of the kernel has: one a warp.
const ROWS_OF_BLOCK: usize = 128 / 32;

/// A loss that there is a kernel for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LossKernel {
    CrossEntropy,
}

impl LossKernel {
    /// The kernel of a loss.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn new(loss: Loss) -> Result<Self, CudaError> {
        match loss {
            Loss::CrossEntropy => Ok(Self::CrossEntropy),
            Loss::SquaredError
            | Loss::BinaryCrossEntropy
            | Loss::AbsoluteError
            | Loss::Huber { .. }
            | Loss::Quantile { .. }
            | Loss::Focal { .. } => Err(CudaError::Unsupported {
                what: format!("the loss {loss:?}"),
            }),
        }
    }

    /// Appends what computes the loss of every row and the gradient by its scores, in a batch of so many samples over all
    /// workers.
    pub(crate) fn launch(self, pass: &mut Pass<'_>, batch: &BatchMemory, samples: usize) {
        let Self::CrossEntropy = self;
        let rows = pass.rows;
        let outputs = batch.scores.len() / batch.losses.len().max(1);
        let arguments = CrossEntropy {
            scores: batch.scores.pointer(),
            gradient: batch.delta.pointer(),
            classes: batch.classes.pointer(),
            losses: batch.losses.pointer(),
            correct: batch.correct.pointer(),
            rows: rows as u32,
            outputs: outputs as u32,
            scale: 1.0 / samples as f64,
        };
        let blocks = [rows.div_ceil(ROWS_OF_BLOCK), 1, 1];
        pass.push(Launch::new(&CROSS_ENTROPY, blocks, arguments));
    }
}
