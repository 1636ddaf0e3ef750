//! `y = x W + b`.
//!
//! W lies as `[in, out]`, so that the forward product and the weight gradient run along its rows. The
//! input gradient is computed transposed, `dx' = W dy'`: there the batch is what vectors run across,
//! and W is read in place instead of being packed (3 times faster than a packing product at 16 rows).

use super::{Layer, Pass};
use crate::factors::Factored;
use crate::gemm::{Into, Left, gemm};
use crate::layout::{CHUNK, Layout, Order, Role};
use crate::replica::Replica;
use crate::simd::for_each_isa;
use std::ops::Range;

/// A dense layer with a bias.
pub(crate) struct Linear {
    inputs: usize,
    outputs: usize,
    weight: Range<usize>,
    bias: Range<usize>,
    factored: Factored,
    /// The place of `factored` in the layout.
    number: usize,
}

impl Linear {
    /// Appends the layer's tensors to the layout.
    pub(crate) fn new(name: &str, inputs: usize, outputs: usize, layout: &mut Layout) -> Self {
        let shape = vec![outputs, inputs];
        let weight = layout.push(
            format!("{name}.weight"),
            shape,
            Order::Transposed,
            Role::Parameter,
        );
        let bias = layout.push(
            format!("{name}.bias"),
            vec![outputs],
            Order::AsIs,
            Role::Parameter,
        );
        let rows_per_chunk = (CHUNK / outputs).clamp(1, inputs);
        let count = inputs.div_ceil(rows_per_chunk);
        let chunks = layout.cut((0..count).map(|i| {
            let rows = rows_per_chunk.min(inputs - i * rows_per_chunk);
            rows * outputs + if i + 1 == count { outputs } else { 0 }
        }));
        let factored = Factored {
            chunks,
            inputs,
            outputs,
            rows_per_chunk,
        };
        layout.factored.push(factored.clone());
        Self {
            inputs,
            outputs,
            weight,
            bias,
            factored,
            number: layout.factored.len() - 1,
        }
    }
}

impl Layer for Linear {
    fn scratch(&self, rows: usize) -> usize {
        rows * (self.inputs + self.outputs)
    }

    fn forward(&mut self, _: Pass<'_>, state: &[f32], x: &[f32], y: &mut [f32], _: &mut [f32]) {
        let bias = &state[self.bias.clone()];
        for row in y.chunks_exact_mut(self.outputs) {
            row.copy_from_slice(bias);
        }
        let shape = (y.len() / self.outputs, self.outputs, self.inputs);
        let weight = &state[self.weight.clone()];
        gemm(
            shape,
            Left::rows(x, self.inputs),
            weight,
            self.outputs,
            y,
            self.outputs,
            Into::Add,
        );
    }

    fn backward(
        &mut self,
        replica: &mut dyn Replica,
        x: &[f32],
        dy: &mut [f32],
        dx: Option<&mut [f32]>,
        scratch: &mut [f32],
    ) {
        let (inputs, outputs) = (self.inputs, self.outputs);
        let rows = dy.len() / outputs;
        if let Some(dx) = dx {
            let weight = replica.values(self.weight.clone());
            let (dy_t, dx_t) = scratch.split_at_mut(rows * outputs);
            let dx_t = &mut dx_t[..rows * inputs];
            transpose(dy, outputs, dy_t);
            let shape = (inputs, rows, outputs);
            gemm(
                shape,
                Left::rows(weight, outputs),
                dy_t,
                rows,
                dx_t,
                rows,
                Into::Replace,
            );
            transpose(dx_t, rows, dx);
        }
        if replica.factors(self.number, x, dy) {
            return;
        }
        for chunk in self.factored.chunks.clone().rev() {
            replica.gradient(chunk, &mut |gradient| {
                self.factored.gradient(chunk, (x, dy), gradient);
            });
        }
    }
}

for_each_isa! {
    /// Writes the transpose of `from`, whose rows have `width` numbers.
    pub(crate) fn transpose(from: &[f32], width: usize, to: &mut [f32]) {
        const BLOCK: usize = 16;
        let height = from.len() / width;
        for top in (0..height).step_by(BLOCK) {
            for left in (0..width).step_by(BLOCK) {
                for j in left..(left + BLOCK).min(width) {
                    for i in top..(top + BLOCK).min(height) {
                        to[j * height + i] = from[i * width + j];
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::check_layer;
    use super::*;

    #[test]
    fn it_agrees_with_finite_differences() {
        for (rows, inputs, outputs) in [(1, 1, 1), (3, 5, 4), (17, 20, 9)] {
            let mut layout = Layout::default();
            let mut layer = Linear::new("l", inputs, outputs, &mut layout);
            check_layer(&mut layer, &layout, rows, inputs, outputs, &|state, x| {
                let (weight, bias) = state.split_at(inputs * outputs);
                x.chunks(inputs)
                    .flat_map(|x| {
                        (0..outputs).map(move |o| {
                            let products = x
                                .iter()
                                .enumerate()
                                .map(|(i, x)| x * weight[i * outputs + o]);
                            bias[o] + products.sum::<f64>()
                        })
                    })
                    .collect()
            });
        }
    }

    #[test]
    fn a_wide_layer_is_cut_into_chunks_that_cover_it() {
        let mut layout = Layout::default();
        Linear::new("l", 100, 1000, &mut layout);
        assert_eq!(layout.len(), 101_000);
        assert_eq!(layout.chunks.len(), 100usize.div_ceil(16));
        assert_eq!(layout.chunks.last().unwrap().len(), 4 * 1000 + 1000);
        assert!(
            layout
                .chunks
                .windows(2)
                .all(|pair| pair[0].end == pair[1].start)
        );
    }

    #[test]
    fn transposing_twice_changes_nothing() {
        let from: Vec<f32> = (0..37 * 19).map(|x| x as f32).collect();
        let (mut there, mut back) = (vec![0.0; from.len()], vec![0.0; from.len()]);
        transpose(&from, 19, &mut there);
        transpose(&there, 37, &mut back);
        assert_eq!(from, back);
        assert_eq!(there[1], from[19]);
    }
}
