//! A dense layer: `y = x W + b`, with its three products in fixed point.
//!
//! The weights have one scale. The rows of a lane have one, both in `x` and in `dy`; in an evaluation every row has its
//! own, so that what is said of it does not depend on others. The gradient of the bias is summed in single precision, as
//! ever.

use super::Precision;
use super::block::{COLUMNS, DEPTH, Left, ROWS, Session};
use super::cast::{bytes, bytes_mut, words_mut};
use super::engine::Engine;
use super::product::{Product, apart};
use super::right::{
    Matrix, Panels, depths, left_of_transpose, left_room, pack, pack_transpose, right_room,
};
use super::scale::Scale;
use super::scales::{Operand, RowScales};
use super::slices::slice;
use crate::factors::{Factored, PANEL, sum_rows};
use crate::layers::{Layer, Pass, carve, carved, of_rows};
use crate::layout::Layout;
use crate::operation::Operation;
use crate::replica::{LayerGradient, Replica};
use crate::threads::{SharedMut, Threads, pieces, pieces_mut, rows_of_a_tile};
use std::ops::Range;

/// A dense layer with a bias.
pub(crate) struct Fixed16Linear {
    layer: Factored,
    scales: RowScales,
    weight_scale: Scale,
}

impl Fixed16Linear {
    /// Appends the layer's tensors to the layout. A pass has at most so many rows, of so many lanes.
    pub(crate) fn new(
        name: &str,
        (inputs, outputs): (usize, usize),
        (rows, lanes): (usize, usize),
        layout: &mut Layout,
    ) -> Self {
        Self {
            layer: Factored::new(name, inputs, outputs, layout),
            scales: RowScales::new(rows, lanes),
            weight_scale: Scale::default(),
        }
    }

    fn panels<'a>(&self, state: &'a [f32]) -> Panels<'a> {
        Panels {
            data: &state[self.layer.weight()],
            rows: self.layer.inputs,
            columns: self.layer.outputs,
        }
    }
}

/// Slices rows, each under its scale, into a left operand.
fn slice_rows<'a>(
    threads: &Threads,
    x: &[f32],
    width: usize,
    scales: &[Scale],
    room: &'a mut [f32],
) -> Left<'a> {
    let stride = depths(width) * DEPTH;
    let (upper, lower) = room.split_at_mut(left_room(x.len() / width, width) / 2);
    let at_once = rows_of_a_tile(width);
    let tiles = (
        pieces(x, at_once * width),
        pieces(scales, at_once),
        pieces_mut(bytes_mut(upper), at_once * stride),
        pieces_mut(bytes_mut(lower), at_once * stride),
    );
    threads.each(tiles, |_, (x, scales, upper, lower)| {
        let rows = x.chunks_exact(width).zip(scales);
        let slices = (upper.chunks_mut(stride)).zip(lower.chunks_mut(stride));
        for ((x, scale), (upper, lower)) in rows.zip(slices) {
            slice(x, scale.by(), &mut upper[..width], &mut lower[..width]);
        }
    });
    Left {
        upper: bytes(upper),
        lower: bytes(lower),
        stride,
    }
}

impl Layer for Fixed16Linear {
    fn scratch(&self, _: &Threads, rows: usize) -> usize {
        let Factored {
            inputs, outputs, ..
        } = self.layer;
        let forward = carved(right_room(inputs, outputs)) + left_room(rows, inputs);
        let by_input = carved(right_room(outputs, inputs)) + left_room(rows, outputs);
        // The last block of every lane's rows is filled up.
        let deep = rows + self.scales.most_lanes() * DEPTH;
        let of_lanes = left_room(inputs, deep) + right_room(deep, outputs);
        forward.max(by_input).max(of_lanes)
    }

    fn operation(&self) -> Operation {
        Operation::Dense {
            layer: self.layer.clone(),
            precision: Precision::Fixed16,
        }
    }

    fn forward(
        &mut self,
        pass: Pass<'_>,
        state: &[f32],
        x: &[f32],
        y: &mut [f32],
        scratch: &mut [f32],
    ) {
        let Factored {
            inputs, outputs, ..
        } = self.layer;
        let (threads, rows) = (pass.threads, x.len() / inputs);
        let weights = self.panels(state);
        self.weight_scale = Scale::on(threads, weights.data);
        let (right, scratch) = carve(scratch, right_room(inputs, outputs));
        let by = self.weight_scale.by();
        let panels = pieces_mut(words_mut(right), right_room(inputs, COLUMNS));
        threads.each(panels, |panel, to| {
            pack(weights.panel(panel * PANEL), by, to)
        });
        let scales = self.scales.find(pass, x, inputs, Operand::Input);
        let product = Product {
            left: slice_rows(threads, x, inputs, scales, scratch),
            offsets: None,
            row_scales: scales,
            rows_of_scale: 1,
            rows,
            right: bytes(right),
            right_scale: self.weight_scale,
            columns: outputs,
            depth: inputs,
        };
        let (bias, y) = (&state[self.layer.bias()], SharedMut::new(y));
        // SAFETY: `y` is borrowed mutably, and has a place for every output.
        unsafe { product.compute(threads, Some(bias), &y, apart(outputs, 0)) };
    }

    fn backward(
        &mut self,
        pass: Pass<'_>,
        replica: &mut dyn Replica,
        x: &[f32],
        dy: &mut [f32],
        dx: Option<&mut [f32]>,
        scratch: &mut [f32],
    ) {
        let Factored {
            inputs, outputs, ..
        } = self.layer;
        let (threads, rows, dy) = (pass.threads, dy.len() / outputs, &*dy);
        let weights = self.panels(replica.state());
        let scales = self.scales.find(pass, dy, outputs, Operand::Error);
        if let Some(dx) = dx {
            let (right, scratch) = carve(scratch, right_room(outputs, inputs));
            let by = self.weight_scale.by();
            let pairs = pieces_mut(words_mut(right), right_room(outputs, COLUMNS));
            threads.each(pairs, |pair, to| {
                pack_transpose(weights, pair * COLUMNS, by, to);
            });
            let product = Product {
                left: slice_rows(threads, dy, outputs, scales, scratch),
                offsets: None,
                row_scales: scales,
                rows_of_scale: 1,
                rows,
                right: bytes(right),
                right_scale: self.weight_scale,
                columns: inputs,
                depth: outputs,
            };
            let dx = SharedMut::new(dx);
            // SAFETY: `dx` is borrowed mutably, and has a place for every output.
            unsafe { product.compute(threads, None, &dx, apart(inputs, 0)) };
        }
        let mut gradient = LaneProducts {
            layer: &self.layer,
            lanes: pass.lanes,
            scales: &self.scales,
            dy,
            operands: &[],
        };
        for (lane, rows) in pass.lanes.iter().enumerate() {
            let [x_scale, dy_scale] = self.scales.of_lane(rows);
            let room = &mut scratch[gradient.place(lane)];
            let [left, right] = gradient.rooms(rows.len());
            let (left, right) = room[..left + right].split_at_mut(left);
            let (x, dy) = (of_rows(x, rows, inputs), of_rows(dy, rows, outputs));
            let (x, dy) = (Matrix::new(x, inputs), Matrix::new(dy, outputs));
            let (upper, lower) = left.split_at_mut(left.len() / 2);
            let tile = left_room(ROWS, rows.len()) / 2;
            let slices = (
                pieces_mut(words_mut(upper), tile),
                pieces_mut(words_mut(lower), tile),
            );
            threads.each(slices, |tile, (upper, lower)| {
                left_of_transpose(x, tile * ROWS, x_scale.by(), upper, lower);
            });
            let pairs = pieces_mut(words_mut(right), right_room(rows.len(), COLUMNS));
            threads.each(pairs, |pair, to| {
                pack(dy.columns(pair * COLUMNS, COLUMNS), dy_scale.by(), to);
            });
        }
        gradient.operands = &*scratch;
        let (lanes, chunks) = (0..pass.lanes.len(), self.layer.chunks.clone());
        replica.gradient(lanes, chunks, &gradient);
    }
}

/// The gradient of a dense layer, formed chunk by chunk where it is asked for, from both operands of every lane.
struct LaneProducts<'a> {
    layer: &'a Factored,
    lanes: &'a [Range<usize>],
    scales: &'a RowScales,
    dy: &'a [f32],
    /// Of each lane, `x` transposed as a left operand, and `dy` as a right one.
    operands: &'a [f32],
}

impl LaneProducts<'_> {
    /// Room for both operands of a lane of so many rows.
    fn rooms(&self, rows: usize) -> [usize; 2] {
        [
            left_room(self.layer.inputs, rows),
            right_room(rows, self.layer.outputs),
        ]
    }

    /// Where a lane's operands lie.
    fn place(&self, lane: usize) -> Range<usize> {
        let room = |rows: &Range<usize>| self.rooms(rows.len()).iter().sum::<usize>();
        let start = self.lanes[..lane].iter().map(room).sum();
        start..start + room(&self.lanes[lane])
    }
}

impl LayerGradient for LaneProducts<'_> {
    fn write(&self, lane: usize, chunk: usize, to: &mut [f32]) {
        let rows = &self.lanes[lane];
        let Factored {
            inputs, outputs, ..
        } = *self.layer;
        if !self.layer.weight_chunks().contains(&chunk) {
            return sum_rows(of_rows(self.dy, rows, outputs), to);
        }
        let [left, _] = self.rooms(rows.len());
        let (left, right) = self.operands[self.place(lane)].split_at(left);
        let (upper, lower) = left.split_at(left.len() / 2);
        let [x_scale, dy_scale] = self.scales.of_lane(rows);
        let product = Product {
            left: Left {
                upper: bytes(upper),
                lower: bytes(lower),
                stride: depths(rows.len()) * DEPTH,
            },
            offsets: None,
            row_scales: &[x_scale],
            rows_of_scale: inputs,
            rows: inputs,
            right: bytes(right),
            right_scale: dy_scale,
            columns: outputs,
            depth: rows.len(),
        };
        let mut session = Session::new(Engine::current());
        let (rows, columns) = self.layer.part_of_chunk(chunk);
        for (column, to) in columns
            .clone()
            .step_by(PANEL)
            .zip(to.chunks_mut(rows.len() * PANEL))
        {
            let (to, columns) = (
                SharedMut::new(to),
                column..(column + PANEL).min(columns.end),
            );
            // The first row and column of the part go to its beginning.
            let place = apart(columns.len(), rows.start * columns.len());
            let (rows, part) = (rows.clone(), product.of_columns(columns));
            // SAFETY: `to` is borrowed mutably.
            unsafe { part.part(&mut session, rows, 0..part.columns, None, &to, place) };
        }
    }
}
