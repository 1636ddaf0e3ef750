//! A dense layer for inference: its product with what comes before and after it in one pass.

use super::activation::{gelu, quick_gelu};
use super::config::Activation;
use super::parts::DenseParts;
use crate::fixed16::{Precision, SlicedMatrix};
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
    matrix: Matrix,
    after: After,
}

/// The matrix and its bias, as the precision wants them.
enum Matrix {
    F32(Panels),
    Fixed16(SlicedMatrix),
}

impl Dense {
    /// A layer with these weights.
    pub(super) fn new(precision: Precision, parts: &DenseParts, after: After) -> Self {
        let (inputs, weight, bias) = (parts.inputs, &parts.weight, &parts.bias);
        let matrix = match precision {
            Precision::F32 => Matrix::F32(Panels::new(inputs, weight, bias)),
            Precision::Fixed16 => Matrix::Fixed16(SlicedMatrix::new(inputs, weight, bias)),
        };
        Self { matrix, after }
    }

    /// Numbers of memory that it needs to work in, for at most so many rows.
    pub(super) fn room(&self, threads: &Threads, rows: usize) -> usize {
        match &self.matrix {
            Matrix::F32(_) => 0,
            Matrix::Fixed16(matrix) => matrix.room(threads, rows),
        }
    }

    /// Computes rows.
    pub(super) fn run(&self, threads: &Threads, x: &[f32], y: &mut [f32], room: &mut [f32]) {
        let finish = match self.after {
            After::Nothing => Finish::Replace,
            After::Relu6 => Finish::Clamp(0.0, 6.0),
            After::Bend(Activation::Gelu) => Finish::Map(gelu),
            After::Bend(Activation::QuickGelu) => Finish::Map(quick_gelu),
            After::Add => Finish::Add,
        };
        match &self.matrix {
            Matrix::F32(panels) => packed(threads, x, panels, y, finish),
            Matrix::Fixed16(matrix) => matrix.product(threads, x, y, finish, room),
        }
    }
}
