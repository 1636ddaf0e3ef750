//! Gradients as the two matrices whose product they are.
//!
//! The weight gradient of a dense layer is `x' dy`: with few rows its factors are far smaller than the
//! gradient itself. Whoever exchanges gradients may exchange the factors instead and form the product
//! where it is needed, with the same bits.

use crate::gemm::{Into, Left, WHOLE_DEPTH, gemm};
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
    pub fn gradient(&self, chunk: usize, (x, dy): (&[f32], &[f32]), gradient: &mut [f32]) {
        let (weight, bias) = self.products(chunk, x, dy, gradient, Into::Replace);
        debug_assert_eq!(weight.len() % self.outputs, 0);
        if !bias.is_empty() {
            sum_rows(dy, bias);
        }
    }

    /// Adds the gradient of one chunk to `sum`, as [`Factored::gradient`] and an addition would, to the
    /// bit. `spare` is room for the gradient, which is not always needed.
    ///
    /// # Panics
    /// As [`Factored::gradient`].
    pub fn add_gradient(
        &self,
        chunk: usize,
        (x, dy): (&[f32], &[f32]),
        sum: &mut [f32],
        spare: &mut [f32],
    ) {
        let spare = &mut spare[..sum.len()];
        if dy.len() / self.outputs > WHOLE_DEPTH {
            self.gradient(chunk, (x, dy), spare);
            return add(sum, spare);
        }
        let (_, bias) = self.products(chunk, x, dy, sum, Into::AddWhole);
        if !bias.is_empty() {
            let spare = &mut spare[..bias.len()];
            sum_rows(dy, spare);
            add(bias, spare);
        }
    }

    /// Computes the weights' part of a chunk. Returns that part, and the bias's, which is empty in all
    /// chunks but the last.
    fn products<'g>(
        &self,
        chunk: usize,
        x: &[f32],
        dy: &[f32],
        gradient: &'g mut [f32],
        into: Into,
    ) -> (&'g mut [f32], &'g mut [f32]) {
        assert!(
            self.chunks.contains(&chunk),
            "chunk {chunk} is not of {self:?}"
        );
        let first = (chunk - self.chunks.start) * self.rows_per_chunk;
        let count = self.rows_per_chunk.min(self.inputs - first);
        let (inputs, outputs) = (self.inputs, self.outputs);
        let bias = if chunk + 1 == self.chunks.end {
            outputs
        } else {
            0
        };
        assert_eq!(
            gradient.len(),
            count * outputs + bias,
            "the length of chunk {chunk}"
        );
        let (weight, bias) = gradient.split_at_mut(count * outputs);
        let shape = (count, outputs, dy.len() / outputs);
        let columns = Left::transposed(&x[first..], inputs);
        gemm(shape, columns, dy, outputs, weight, outputs, into);
        (weight, bias)
    }
}

for_each_isa! {
    /// Adds `from` to `into`.
    pub fn add(into: &mut [f32], from: &[f32]) {
        for (into, &from) in into.iter_mut().zip(from) {
            *into += from;
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adding_a_gradient_gives_the_bits_of_forming_it_and_adding() {
        let layer = Factored {
            chunks: 3..6,
            inputs: 25,
            outputs: 7,
            rows_per_chunk: 11,
        };
        let number = |i: usize| ((i * 7919) % 1009) as f32 / 1009.0;
        for rows in [1, 4, WHOLE_DEPTH, WHOLE_DEPTH + 1] {
            let x: Vec<f32> = (0..rows * 25).map(number).collect();
            let dy: Vec<f32> = (0..rows * 7).map(|i| number(i + 5)).collect();
            for (chunk, len) in [(3, 77), (4, 77), (5, 3 * 7 + 7)] {
                let mut sum: Vec<f32> = (0..len).map(|i| number(i + 11)).collect();
                let mut expected = sum.clone();
                let (mut gradient, mut spare) = (vec![0.0; len], vec![0.0; len]);
                layer.gradient(chunk, (&x, &dy), &mut gradient);
                add(&mut expected, &gradient);
                layer.add_gradient(chunk, (&x, &dy), &mut sum, &mut spare);
                assert_eq!(sum, expected, "{rows} rows, chunk {chunk}");
            }
        }
    }
}
