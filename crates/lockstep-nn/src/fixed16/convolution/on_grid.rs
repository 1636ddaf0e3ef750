//! Windows that move by one pixel, over images with margins.
//!
//! What a window sees of a line of its kernel lies in one piece, and 16 windows that follow each other are 16 rows of a
//! left operand, wherever they begin. Windows that begin in a margin are computed too, and dropped. Of the kernels each
//! line is filled up to whole blocks with zeros, so it does not matter what lies behind what a window sees.
//!
//! For the gradient of the kernels, pixels are the depth: places of the input are turned into rows, one for each channel,
//! and what each place of the kernel sees is the same row, moved by some places.

use super::super::block::{COLUMNS, DEEPEST, DEPTH, Left, ROWS, Session};
use super::super::cast::{bytes, bytes_mut, totals_mut, words_mut};
use super::super::engine::Engine;
use super::super::grid::PixelGrid;
use super::super::product::{Product, Totals, Turn, apart};
use super::super::right::{Matrix, depths, pack, pack_slices, right_room, tiles};
use super::super::scale::Scale;
use super::super::transpose::transpose_bytes;
use super::Shape;
use crate::dims::Dims;
use crate::layers::linear::transpose_on;
use crate::layers::{carve, carved};
use crate::threads::{SharedMut, Threads, pieces_mut};

/// A convolution on grids.
pub(super) struct OnGrid {
    shape: Shape,
    input: PixelGrid,
    output: PixelGrid,
    /// Where in a row what a window sees lies, of the input and of the errors.
    offsets: [Vec<usize>; 2],
}

impl OnGrid {
    /// None where windows do not move by one pixel, or margins are too wide.
    pub(super) fn new(shape: Shape) -> Option<Self> {
        let Shape {
            window,
            input,
            output,
        } = shape;
        let kernel = window.kernel;
        let rest = [0, 1].map(|axis| (kernel[axis] - 1).checked_sub(window.padding[axis]));
        let [Some(below), Some(behind)] = rest else {
            return None;
        };
        let grids = [
            (input, PixelGrid::new(input, kernel, window.padding)?),
            (output, PixelGrid::new(output, kernel, [below, behind])?),
        ];
        let offsets = grids.map(|(image, grid)| {
            let of_line = depths(kernel[1] * image.channels);
            let offset = |i: usize| grid.offset(i / of_line, 0) + i % of_line * DEPTH;
            (0..kernel[0] * of_line).map(offset).collect::<Vec<usize>>()
        });
        let is_shallow = offsets
            .iter()
            .all(|offsets| offsets.len() * DEPTH <= DEEPEST);
        (window.stride == [1, 1] && is_shallow).then_some(Self {
            shape,
            input: grids[0].1,
            output: grids[1].1,
            offsets,
        })
    }

    /// Whether places can be turned into rows: whole blocks of channels.
    pub(super) fn turns(&self) -> bool {
        self.shape.input.channels.is_multiple_of(ROWS)
    }

    /// Numbers of scratch memory for so many images: forward, and the gradient by the input.
    pub(super) fn scratch(&self, images: usize) -> usize {
        let Shape { input, output, .. } = self.shape;
        let room = |offsets: &[usize], columns| carved(right_room(offsets.len() * DEPTH, columns));
        let forward = room(&self.offsets[0], output.channels) + self.input.room(images);
        let back = room(&self.offsets[1], input.channels) + self.output.room(images);
        forward.max(carved(self.shape.weights()) + back)
    }

    pub(super) fn forward(
        &self,
        threads: &Threads,
        kernels: (&[f32], Scale),
        bias: Option<&[f32]>,
        x: (&[f32], &[Scale]),
        y: &mut [f32],
        scratch: &mut [f32],
    ) {
        let Shape { input, output, .. } = self.shape;
        let source = (&self.input, input, &self.offsets[0][..]);
        self.convolve(threads, source, kernels, bias, x, (y, output), scratch);
    }

    /// The same with the kernels turned round.
    pub(super) fn input_gradient(
        &self,
        threads: &Threads,
        (kernels, scale): (&[f32], Scale),
        dy: (&[f32], &[Scale]),
        dx: &mut [f32],
        scratch: &mut [f32],
    ) {
        let Shape { input, output, .. } = self.shape;
        let (turned, scratch) = carve(scratch, kernels.len());
        let of_place = input.channels * output.channels;
        let places = kernels.chunks_exact(of_place).rev();
        for (from, to) in places.zip(turned.chunks_exact_mut(of_place)) {
            transpose_on(threads, from, output.channels, to);
        }
        let source = (&self.output, output, &self.offsets[1][..]);
        let kernels = (&*turned, scale);
        self.convolve(threads, source, kernels, None, dy, (dx, input), scratch);
    }

    /// Multiplies what windows see of a source with the kernels.
    #[allow(
        clippy::too_many_arguments,
        reason = "two operands, their scales, and where to"
    )]
    fn convolve(
        &self,
        threads: &Threads,
        (grid, source, offsets): (&PixelGrid, Dims, &[usize]),
        (kernels, scale): (&[f32], Scale),
        bias: Option<&[f32]>,
        (x, scales): (&[f32], &[Scale]),
        (y, target): (&mut [f32], Dims),
        scratch: &mut [f32],
    ) {
        let (columns, [lines, _]) = (target.channels, self.shape.window.kernel);
        let depth = offsets.len() * DEPTH;
        let (right, scratch) = carve(scratch, right_room(depth, columns));
        let pairs = pieces_mut(words_mut(right), right_room(depth, COLUMNS));
        threads.each(pairs, |pair, to| {
            // Every line of the kernels is filled up to whole blocks.
            let of_line = kernels.chunks_exact(kernels.len() / lines);
            let length = to.len() / lines;
            for (line, to) in of_line.zip(to.chunks_exact_mut(length)) {
                let matrix = Matrix::new(line, columns).columns(pair * COLUMNS, COLUMNS);
                pack(matrix, scale.by(), to);
            }
        });
        let images = x.len() / source.len();
        let [upper, lower] = grid.slice(threads, x, scales, &mut scratch[..grid.room(images)]);
        let product = Product {
            left: Left {
                upper,
                lower,
                stride: source.channels,
            },
            offsets: Some(offsets),
            row_scales: scales,
            rows_of_scale: grid.places_of_image(),
            rows: grid.places(images),
            right: bytes(right),
            right_scale: scale,
            columns,
            depth,
        };
        let place = |row, places: &mut [usize]| grid.pixels(row, target, places);
        let y = SharedMut::new(y);
        // SAFETY: `y` is borrowed mutably, and every pixel is at one place.
        unsafe { product.compute(threads, bias, &y, place) };
    }

    /// Numbers of a row that places are turned into, for so many of them.
    fn row_bytes(&self, places: usize) -> usize {
        let reach = self.input.reach(self.shape.window.kernel);
        (places.next_multiple_of(DEPTH) + reach).next_multiple_of(DEPTH)
    }

    /// Numbers of scratch memory for the gradient of the kernels; none if it cannot be had here.
    pub(super) fn gradient_scratch(&self, images: usize) -> Option<usize> {
        let Shape { input, output, .. } = self.shape;
        let places = self.input.places(images).next_multiple_of(DEPTH);
        let most = self.shape.most_places_at_once();
        let at_once = places.min(most);
        let blocks = self.shape.depth() / ROWS * output.channels.div_ceil(COLUMNS);
        let totals = Totals::room(if places > most { blocks } else { 0 });
        let slices = self.input.room(images) + self.output.room(images);
        let operands = carved(right_room(at_once, output.channels))
            + 2 * carved(input.channels * self.row_bytes(at_once) / 4);
        self.turns().then_some(slices + operands + carved(totals))
    }

    /// The gradient of the kernels of one lane.
    pub(super) fn weight_gradient(
        &self,
        threads: &Threads,
        (x, dy): (&[f32], &[f32]),
        [x_scale, dy_scale]: [Scale; 2],
        gradient: &mut [f32],
        scratch: &mut [f32],
    ) {
        let Shape {
            window,
            input,
            output,
        } = self.shape;
        let (inputs, channels) = (input.channels, output.channels);
        let images = x.len() / input.len();
        let (room, scratch) = carve(scratch, self.input.room(images));
        let x = self.input.slice(threads, x, &[x_scale], room);
        let (room, scratch) = carve(scratch, self.output.room(images));
        let dy = self.output.slice(threads, dy, &[dy_scale], room);
        let places = self.input.places(images);
        let at_once = self.shape.places_at_once(places);
        let row_bytes = self.row_bytes(at_once);
        let (right, scratch) = carve(scratch, right_room(at_once, channels));
        let (upper, scratch) = carve(scratch, inputs * row_bytes / 4);
        let (lower, totals) = carve(scratch, inputs * row_bytes / 4);
        let totals = SharedMut::new(totals_mut(totals));
        let gradient = SharedMut::new(gradient);
        let groups = inputs.div_ceil(DEPTH);
        for start in (0..places).step_by(at_once) {
            let count = at_once.min(places - start);
            let right = &mut right[..right_room(count, channels)];
            let packed = pieces_mut(words_mut(right), right_room(count, COLUMNS));
            threads.each(packed, |pair, to| {
                let column = pair * COLUMNS;
                let at = (self.output.lead() + start) * channels + column;
                let slices = dy.map(|slice| &slice[at..]);
                pack_slices(slices, channels, count, tiles(column, channels), to);
            });
            let rows = (
                pieces_mut(bytes_mut(upper), ROWS * row_bytes),
                pieces_mut(bytes_mut(lower), ROWS * row_bytes),
            );
            let filled = self.row_bytes(count);
            threads.each(rows, |block, (upper, lower)| {
                for (slice, to) in x.into_iter().zip([upper, lower]) {
                    for first in (0..filled).step_by(DEPTH) {
                        let from = &slice[(start + first) * inputs + block * ROWS..];
                        transpose_bytes(from, inputs, ROWS, &mut to[first..], row_bytes);
                    }
                }
            });
            let (right, left) = (
                bytes(right),
                Left {
                    upper: bytes(upper),
                    lower: bytes(lower),
                    stride: row_bytes,
                },
            );
            threads.each(0..window.area() * groups, |_, task| {
                let (place, group) = (task / groups, task % groups);
                let (line, column) = (place / window.kernel[1], place % window.kernel[1]);
                let product = Product {
                    left: left.at(0, self.input.offset(line, column) / inputs),
                    offsets: None,
                    row_scales: &[x_scale],
                    rows_of_scale: inputs,
                    rows: inputs,
                    right,
                    right_scale: dy_scale,
                    columns: channels,
                    depth: count,
                };
                let mut session = Session::new(Engine::current());
                let rows = group * DEPTH..((group + 1) * DEPTH).min(inputs);
                let at = |row: usize, places: &mut [usize]| {
                    apart(channels, 0)(place * inputs + row, places);
                };
                let turn = Turn {
                    totals: (at_once < places).then_some(&totals),
                    first_row: place * inputs,
                    is_first: start == 0,
                    is_last: start + count == places,
                };
                // SAFETY: tasks have other rows, and so other totals and other numbers of the gradient.
                unsafe { product.turn(&mut session, rows, &turn, &gradient, at) };
            });
        }
    }
}
