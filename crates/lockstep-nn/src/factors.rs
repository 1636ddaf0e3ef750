//! Gradients as the two matrices whose product they are.
//!
//! The weight gradient of a dense layer is `x' dy`: with few rows its factors are far smaller than the
//! gradient itself. Whoever exchanges gradients may exchange the factors instead and form the product
//! where it is needed, with the same bits.

use crate::gemm::{Into, Left, gemm};
use crate::simd::for_each_isa;
use std::ops::Range;

/// A run of chunks that are a dense layer's weights, row by row, and its bias after the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Factored {
    /// The chunks.
    pub chunks: Range<usize>,
    /// Columns of `x`.
    pub inputs: usize,
    /// Columns of `dy`.
    pub outputs: usize,
    /// Rows of the weights in each chunk; the last may have fewer.
    pub rows_per_chunk: usize,
}

impl Factored {
    /// The gradient of one chunk from the factors of some rows: `x` is `rows x inputs`, `dy` is
    /// `rows x outputs`.
    ///
    /// # Panics
    /// When the chunk is not of this layer, or `gradient` is not as long as it.
    pub fn gradient(&self, chunk: usize, x: &[f32], dy: &[f32], gradient: &mut [f32]) {
        assert!(
            self.chunks.contains(&chunk),
            "chunk {chunk} is not of {self:?}"
        );
        let first = (chunk - self.chunks.start) * self.rows_per_chunk;
        let count = self.rows_per_chunk.min(self.inputs - first);
        let (inputs, outputs) = (self.inputs, self.outputs);
        let rows = dy.len() / outputs;
        let (weight, bias) = gradient.split_at_mut(count * outputs);
        let columns = Left::transposed(&x[first..], inputs);
        gemm(
            (count, outputs, rows),
            columns,
            dy,
            outputs,
            weight,
            outputs,
            Into::Replace,
        );
        if chunk + 1 == self.chunks.end {
            sum_rows(dy, bias);
        }
    }
}

for_each_isa! {
    /// Adds up the rows of `x`, first to last.
    pub(crate) fn sum_rows(x: &[f32], sum: &mut [f32]) {
        sum.fill(0.0);
        for row in x.chunks_exact(sum.len()) {
            for (sum, &x) in sum.iter_mut().zip(row) {
                *sum += x;
            }
        }
    }
}
