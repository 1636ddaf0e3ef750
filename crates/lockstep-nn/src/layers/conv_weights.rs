//! The parameters of a convolution: the kernels as a matrix with a row for every number of a window and a column for
//! every output channel, perhaps a bias, and how both are cut into chunks of whole rows.

use super::window::Window;
use crate::dims::Dims;
use crate::factors::{add, sum_rows};
use crate::layout::{Layout, NumberOrder, Role};
use crate::operation::{ConvolutionMethod, Operation};
use crate::replica::{LayerGradient, written};
use crate::threads::{Threads, pieces, pieces_mut};
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

    /// The gradient of one lane, chunk by chunk, from that of all kernels and of the bias.
    pub(crate) fn gradient<'a>(
        &'a self,
        weight: &'a [f32],
        bias: &'a [f32],
    ) -> impl LayerGradient + 'a {
        let channels = bias.len();
        written(move |_, chunk, gradient: &mut [f32]| {
            let rows = self.rows(chunk);
            let (of_weight, of_bias) = gradient.split_at_mut(rows.len() * channels);
            of_weight.copy_from_slice(&weight[rows.start * channels..rows.end * channels]);
            of_bias.copy_from_slice(&bias[..of_bias.len()]);
        })
    }

    /// The rows of the matrix that a chunk holds.
    fn rows(&self, chunk: usize) -> Range<usize> {
        let first = (chunk - self.chunks.start) * self.rows_per_chunk;
        first..(first + self.rows_per_chunk).min(self.rows)
    }
}

/// Sums up the gradient by the bias. There is room for a sum of every image.
pub(crate) fn bias_gradient(
    threads: &Threads,
    dy: &[f32],
    output: Dims,
    images: &mut [f32],
    bias: &mut [f32],
) {
    let tiles = pieces_mut(images, output.channels);
    threads.each((pieces(dy, output.len()), tiles), |_, (dy, image)| {
        sum_rows(dy, image);
    });
    // Images one by one: single precision loses less on short sums.
    bias.fill(0.0);
    for image in images.chunks_exact(output.channels) {
        add(bias, image);
    }
}
