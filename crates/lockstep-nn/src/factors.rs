//! Dense layers as the trainer sees them: gradients as the two matrices whose product they are, and
//! outputs by columns.
//!
//! The weight gradient of a dense layer is `x' dy`: with few rows its factors are far smaller than the
//! gradient itself. Whoever exchanges gradients may exchange the factors instead and form the product
//! where it is needed, with the same bits. And since every chunk of the weights is all that some columns
//! of the output need, whoever has the chunk can compute those columns for everyone.

use crate::gemm::{Accumulate, Left, Shape, Span, WHOLE_DEPTH, Walk, in_tiles, nested_at};
use crate::layout::{CHUNK, Layout, NumberOrder, Role};
use crate::simd::for_each_isa;
use crate::threads::{Grid, SharedMut, Threads};
use std::ops::Range;

/// Columns of a panel of weights: two vectors of the widest kind, so that most layers have as many panels
/// as workers can share evenly.
pub const PANEL: usize = 32;

/// Rows of the batch that a tile of the output has at the least: a tile of the registers.
const ROWS: usize = 12;

/// Inputs up to which a panel is not cut: all columns that it computes belong to one chunk.
const UNCUT: usize = 4 * CHUNK / PANEL;

/// The chunks of a dense layer: its weights, panel by panel, and its bias.
///
/// A panel is [`PANEL`] columns of the weights (the last may have fewer), row by row. A chunk is some whole
/// panels, or a part of the rows of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Factored {
    /// The chunks: the weights', and the bias after them.
    pub chunks: Range<usize>,
    /// Columns of `x`.
    pub inputs: usize,
    /// Columns of `dy`.
    pub outputs: usize,
    panels_per_chunk: usize,
    rows_per_chunk: usize,
    weight: Range<usize>,
    bias: Range<usize>,
}

impl Factored {
    /// Appends a layer's tensors to the layout.
    pub(crate) fn new(name: &str, inputs: usize, outputs: usize, layout: &mut Layout) -> Self {
        let mut push = |part, shape, order| {
            layout.push(format!("{name}.{part}"), shape, order, Role::Parameter)
        };
        let weight = push("weight", vec![outputs, inputs], NumberOrder::Panels);
        let bias = push("bias", vec![outputs], NumberOrder::AsIs);
        let mut layer = Self {
            chunks: 0..0,
            inputs,
            outputs,
            panels_per_chunk: (CHUNK / (PANEL * inputs)).max(1),
            rows_per_chunk: match inputs <= UNCUT {
                true => inputs,
                false => CHUNK / PANEL,
            },
            weight,
            bias,
        };
        let count = layer.panels().div_ceil(layer.panels_per_chunk) * layer.cuts();
        let lengths = (0..count).map(|i| {
            let (rows, columns) = layer.part(i);
            rows.len() * columns.len()
        });
        layer.chunks = layout.cut(lengths.chain([outputs]));
        layer
    }

    /// The chunks of the weights.
    pub fn weight_chunks(&self) -> Range<usize> {
        self.chunks.start..self.chunks.end - 1
    }

    /// The columns of the output that a chunk of the weights is all of the weights for, if there are any.
    pub fn columns(&self, chunk: usize) -> Option<Range<usize>> {
        assert!(
            self.weight_chunks().contains(&chunk),
            "chunk {chunk} is not of the weights of {self:?}"
        );
        let (_, columns) = self.part(chunk - self.chunks.start);
        (self.cuts() == 1).then_some(columns)
    }

    fn panels(&self) -> usize {
        self.outputs.div_ceil(PANEL)
    }

    /// The parts that a panel's rows are cut into.
    fn cuts(&self) -> usize {
        self.inputs.div_ceil(self.rows_per_chunk)
    }

    /// The rows and columns of the weights in one of their chunks.
    pub(crate) fn part_of_chunk(&self, chunk: usize) -> (Range<usize>, Range<usize>) {
        self.part(chunk - self.chunks.start)
    }

    /// The rows and columns of the weights in the layer's `i`-th chunk.
    fn part(&self, i: usize) -> (Range<usize>, Range<usize>) {
        let (panel, cut) = (i / self.cuts() * self.panels_per_chunk, i % self.cuts());
        let columns = panel * PANEL..((panel + self.panels_per_chunk) * PANEL).min(self.outputs);
        let rows = cut * self.rows_per_chunk..((cut + 1) * self.rows_per_chunk).min(self.inputs);
        (rows, columns)
    }

    /// Computes the output `y` of the rows `x`.
    pub(crate) fn forward(&self, threads: &Threads, state: &[f32], x: &[f32], y: &mut [f32]) {
        let weights = (&state[self.weight.clone()], &state[self.bias.clone()]);
        self.product(threads, 0..self.outputs, weights, x, (y, self.outputs));
    }

    /// Where the weights of the whole layer lie in the state.
    pub fn weight(&self) -> Range<usize> {
        self.weight.clone()
    }

    /// Where the bias of the whole layer lies in the state.
    pub fn bias(&self) -> Range<usize> {
        self.bias.clone()
    }

    /// Computes some columns of the output of the rows `x`: those of whole panels, from the weights of
    /// just these columns and the bias of all. The rows of `y` begin with the first of these columns, and
    /// come with the distance between them.
    ///
    /// # Panics
    /// When the columns do not begin with a panel, or an operand is too short.
    pub fn product(
        &self,
        threads: &Threads,
        columns: Range<usize>,
        (weight, bias): (&[f32], &[f32]),
        x: &[f32],
        (y, stride): (&mut [f32], usize),
    ) {
        assert!(
            columns.start.is_multiple_of(PANEL),
            "{columns:?} begin inside a panel"
        );
        let (rows, bias) = (x.len() / self.inputs, &bias[columns.clone()]);
        let work = x.len() * columns.len();
        let grid = Grid::new(threads, (rows, ROWS), (columns.len(), PANEL), work);
        let y = SharedMut::new(y);
        threads.each(0..grid.count(), |_, tile| {
            let (rows, columns) = grid.tile(tile);
            for start in columns.clone().step_by(PANEL) {
                let panel = start..(start + PANEL).min(columns.end);
                for row in rows.clone() {
                    let at = row * stride;
                    // SAFETY: tiles do not overlap.
                    let y = unsafe { y.part(at + panel.start..at + panel.end) };
                    y.copy_from_slice(&bias[panel.clone()]);
                }
                let shape = Shape {
                    rows: Span::flat(rows.len()),
                    columns: panel.len(),
                    depth: Span::flat(self.inputs),
                };
                let x = Left::rows(&x[rows.start * self.inputs..], self.inputs);
                let weight = (&weight[start * self.inputs..], panel.len());
                let to = (&y, rows.start * stride + start);
                // SAFETY: tiles do not overlap.
                unsafe { nested_at(shape, x, weight, to, Walk::flat(stride), Accumulate::Add) };
            }
        });
    }

    /// Computes the transposed gradient by the input from that by the output: `dx' = W dy'`. There the
    /// rows of the batch are what vectors run across, and the weights are read in place instead of being
    /// packed (3 times faster than a packing product at 16 rows).
    pub(crate) fn input_gradient(
        &self,
        threads: &Threads,
        state: &[f32],
        dy_t: &[f32],
        dx_t: &mut [f32],
    ) {
        let rows = dy_t.len() / self.outputs;
        let weight = &state[self.weight.clone()];
        let whole = self.outputs / PANEL;
        let (panels, last) = weight.split_at(whole * PANEL * self.inputs);
        let mut into = Accumulate::Replace;
        // Each number is one chain over all columns: the last panel goes on where the others end.
        if whole > 0 {
            let depth = Span {
                outer: 1,
                middle: whole,
                inner: PANEL,
            };
            let shape = (self.inputs, rows, depth);
            let left = Left {
                data: panels,
                rows: Walk::flat(PANEL),
                depth: Walk {
                    outer: 0,
                    middle: PANEL * self.inputs,
                    inner: 1,
                },
            };
            in_tiles(threads, shape, left, (dy_t, rows), (dx_t, rows), into);
            into = Accumulate::Add;
        }
        if !last.is_empty() {
            let width = self.outputs - whole * PANEL;
            let shape = (self.inputs, rows, Span::flat(width));
            let dy_t = &dy_t[whole * PANEL * rows..];
            let last = Left::rows(last, width);
            in_tiles(threads, shape, last, (dy_t, rows), (dx_t, rows), into);
        }
    }

    /// The gradient of one chunk from the factors of some rows: `x` is `rows x inputs`, `dy` is
    /// `rows x outputs`.
    ///
    /// # Panics
    /// When the chunk is not of this layer, or `gradient` is not as long as it.
    pub fn gradient(
        &self,
        threads: &Threads,
        chunk: usize,
        (x, dy): (&[f32], &[f32]),
        gradient: &mut [f32],
    ) {
        match self.weight_chunks().contains(&chunk) {
            true => self.products(threads, chunk, (x, dy), gradient, Accumulate::Replace),
            false => sum_rows(dy, gradient),
        }
    }

    /// Adds the gradient of one chunk to `sum`, as [`Factored::gradient`] and an addition would, to the
    /// bit. `spare` is room for the gradient, which is not always needed.
    ///
    /// # Panics
    /// As [`Factored::gradient`].
    pub fn add_gradient(
        &self,
        threads: &Threads,
        chunk: usize,
        (x, dy): (&[f32], &[f32]),
        sum: &mut [f32],
        spare: &mut [f32],
    ) {
        let rows = dy.len() / self.outputs;
        if rows <= WHOLE_DEPTH && self.weight_chunks().contains(&chunk) {
            return self.products(threads, chunk, (x, dy), sum, Accumulate::AddWhole);
        }
        let spare = &mut spare[..sum.len()];
        self.gradient(threads, chunk, (x, dy), spare);
        add(sum, spare);
    }

    /// Computes a chunk of the weights' gradient.
    fn products(
        &self,
        threads: &Threads,
        chunk: usize,
        (x, dy): (&[f32], &[f32]),
        gradient: &mut [f32],
        into: Accumulate,
    ) {
        let (rows, columns) = self.part(chunk - self.chunks.start);
        assert_eq!(
            gradient.len(),
            rows.len() * columns.len(),
            "the length of chunk {chunk}"
        );
        let x = Left::transposed(&x[rows.start..], self.inputs);
        let panels = gradient.chunks_mut(rows.len() * PANEL);
        for (start, gradient) in columns.clone().step_by(PANEL).zip(panels) {
            let width = PANEL.min(columns.end - start);
            let shape = (rows.len(), width, Span::flat(dy.len() / self.outputs));
            let dy = (&dy[start..], self.outputs);
            in_tiles(threads, shape, x, dy, (gradient, width), into);
        }
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

    fn layer(inputs: usize, outputs: usize) -> (Factored, Layout) {
        let mut layout = Layout::default();
        layout.push(
            "before".to_owned(),
            vec![3],
            NumberOrder::AsIs,
            Role::Parameter,
        );
        layout.cut([3]);
        let layer = Factored::new("l", inputs, outputs, &mut layout);
        (layer, layout)
    }

    fn number(i: usize) -> f32 {
        ((i * 7919) % 1009) as f32 / 1009.0
    }

    fn numbers(len: usize, from: usize) -> Vec<f32> {
        (from..from + len).map(number).collect()
    }

    #[test]
    fn chunks_are_whole_panels_or_parts_of_one_and_cover_the_layer() {
        for (inputs, outputs, weights) in
            [(5, 4, 1), (784, 512, 16), (100, 1000, 7), (5000, 70, 30)]
        {
            let (layer, layout) = layer(inputs, outputs);
            assert_eq!(layer.weight_chunks().len(), weights, "{inputs} x {outputs}");
            assert_eq!(layout.len(), 3 + inputs * outputs + outputs);
            assert!(
                layout
                    .chunks
                    .windows(2)
                    .all(|pair| pair[0].end == pair[1].start)
            );
            let columns: Vec<_> = layer
                .weight_chunks()
                .map(|chunk| layer.columns(chunk))
                .collect();
            match inputs <= UNCUT {
                true => assert!(columns.into_iter().flatten().flatten().eq(0..outputs)),
                false => assert!(columns.iter().all(Option::is_none)),
            }
        }
    }

    #[test]
    fn some_columns_have_the_bits_of_all() {
        let (layer, layout) = layer(40, 70);
        let (state, x) = (numbers(layout.len(), 3), numbers(5 * 40, 8));
        let mut whole = vec![0.0; 5 * 70];
        let compute = Threads::default();
        layer.forward(&compute, &state, &x, &mut whole);
        for columns in [0..32, 32..64, 64..70, 32..70] {
            let width = columns.len();
            let mut part = vec![0.0; 5 * width];
            let weight = &state[layer.weight.start + columns.start * 40..];
            let bias = &state[layer.bias()];
            let part_of = (&mut part[..], width);
            layer.product(&compute, columns.clone(), (weight, bias), &x, part_of);
            for (part, whole) in part.chunks(width).zip(whole.chunks(70)) {
                assert_eq!(part, &whole[columns.clone()]);
            }
        }
    }

    #[test]
    fn adding_a_gradient_gives_the_bits_of_forming_it_and_adding() {
        let (layer, layout) = layer(2500, 39);
        let compute = Threads::default();
        for rows in [1, 4, WHOLE_DEPTH, WHOLE_DEPTH + 1] {
            let (x, dy) = (numbers(rows * 2500, 0), numbers(rows * 39, 5));
            for chunk in layer.chunks.clone() {
                let len = layout.chunks[chunk].len();
                let mut sum = numbers(len, 11);
                let mut expected = sum.clone();
                let (mut gradient, mut spare) = (vec![0.0; len], vec![0.0; len]);
                layer.gradient(&compute, chunk, (&x, &dy), &mut gradient);
                add(&mut expected, &gradient);
                layer.add_gradient(&compute, chunk, (&x, &dy), &mut sum, &mut spare);
                assert_eq!(sum, expected, "{rows} rows, chunk {chunk}");
            }
        }
    }
}
