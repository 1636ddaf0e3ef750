//! The parameters of a convolution: the kernels as a matrix with a row for every number of a window and a column for
//! every output channel, perhaps a bias, and how both are cut into chunks of whole rows.

use super::window::Window;
use crate::dims::Dims;
use crate::layout::{Layout, NumberOrder, Role};
use crate::operation::{ConvolutionMethod, Operation};
use std::ops::Range;

/// Where a convolution's parameters lie.
pub(crate) struct ConvWeights {
    /// The kernels.
    pub(crate) weight: Range<usize>,
    /// A number a channel, in the last chunk.
    pub(crate) bias: Option<Range<usize>>,
    /// Their chunks.
    pub(crate) chunks: Range<usize>,
    rows: usize,
    rows_per_chunk: usize,
}

impl ConvWeights {
    /// Appends the tensors to the layout. The shape is PyTorch's: outputs, inputs that each sees, height and width.
    pub(crate) fn new(name: &str, shape: [usize; 4], bias: bool, layout: &mut Layout) -> Self {
        let (channels, rows) = (shape[0], shape[1..].iter().product());
        let mut push = |part: &str, shape: &[usize], order| {
            let name = format!("{name}.{part}");
            layout.push(name, shape.to_vec(), order, Role::Parameter)
        };
        let weight = push("weight", &shape, NumberOrder::Convolution);
        let bias = bias.then(|| push("bias", &[channels], NumberOrder::AsIs));
        let (chunks, rows_per_chunk) = layout.cut_rows(rows, channels, bias.as_ref());
        Self {
            weight,
            bias,
            chunks,
            rows,
            rows_per_chunk,
        }
    }

    /// The convolution of these shapes with these parameters.
    pub(crate) fn operation(
        &self,
        method: ConvolutionMethod,
        window: Window,
        [input, output]: [Dims; 2],
    ) -> Operation {
        Operation::Convolution {
            method,
            window,
            input,
            output,
            weight: self.weight.clone(),
            bias: self.bias.clone(),
        }
    }

    /// The rows of the matrix that a chunk holds.
    pub(crate) fn rows(&self, chunk: usize) -> Range<usize> {
        let first = (chunk - self.chunks.start) * self.rows_per_chunk;
        first..(first + self.rows_per_chunk).min(self.rows)
    }
}
