//! A convolution, with its three products in fixed point.
//!
//! Images are sliced where they lie. What the outputs of some pixels see is gathered into rows of a left operand, which
//! the kernels are multiplied with. The gradient by the input is the same with the kernels turned round; with a stride
//! the pixels of the input fall into classes, each of which meets its own part of the kernels. The gradient of the
//! kernels is one sum over all pixels of a lane: rows of it are what a place of the kernel sees, pixel by pixel.
//!
//! Scales are those of dense layers: one for the kernels, one for the images of a lane, in an evaluation one for each
//! image.

use super::block::{COLUMNS, DEPTH, Left, ROWS, Session};
use super::cast::{bytes, bytes_mut, totals_mut, words_mut};
use super::engine::Engine;
use super::gather::Gather;
use super::product::{Destination, Product, Totals};
use super::right::{Matrix, depths, pack, right_room};
use super::scale::Scale;
use super::scales::{Operand, RowScales};
use super::slices::slice;
use super::transpose::transpose_bytes;
use crate::dims::Dims;
use crate::layers::conv_weights::{ConvWeights, bias_gradient};
use crate::layers::linear::transpose_on;
use crate::layers::window::Window;
use crate::layers::{Layer, Pass, carve, carved, of_rows};
use crate::layout::Layout;
use crate::operation::{ConvolutionMethod, Operation};
use crate::replica::Replica;
use crate::threads::{SharedMut, Threads, pieces, pieces_mut};
use std::ops::Range;

/// Bytes of the rows that are gathered at a time: they stay in the second-level cache beside a pair of columns.
const GATHERED: usize = 512 * 1024;

/// Rows that are gathered at a time, at the most.
const MOST_ROWS: usize = 128;

/// Bytes of the errors of the pixels that are multiplied together for the kernels' gradient: they stay in the
/// second-level cache while all rows go by.
const ERRORS: usize = 768 * 1024;

/// A convolution whose channels are not in groups.
pub(crate) struct Fixed16Conv2d {
    window: Window,
    input: Dims,
    output: Dims,
    weights: ConvWeights,
    forward: Gather,
    classes: Vec<Class>,
    scales: RowScales,
    weight_scale: Scale,
}

/// The pixels of the input that see the same places of the output.
struct Class {
    gather: Gather,
    /// The first of them, and the pixels from one to the next.
    first: [usize; 2],
    step: [usize; 2],
    /// The places of the kernel that they meet, in the order of the gather.
    places: Vec<usize>,
}

impl Class {
    /// All classes of a convolution, of which each pixel of the input is in one.
    fn of_all(window: Window, input: Dims, output: Dims) -> Vec<Self> {
        let [steps_down, steps_right] = window.stride;
        let firsts =
            (0..steps_down).flat_map(|down| (0..steps_right).map(move |right| [down, right]));
        let class = |first: [usize; 2]| {
            let size = [input.height, input.width];
            let pixels = [0, 1].map(|axis| {
                let left = size[axis].saturating_sub(first[axis]);
                left.div_ceil(window.stride[axis])
            });
            // A place k of the kernel is over pixel `first + i * stride` for the output `i + (first + padding - k) /
            // stride`, if that is a whole number.
            let along = |axis: usize| {
                let at = (first[axis] + window.padding[axis]) as isize;
                let stride = window.stride[axis] as isize;
                let places = (0..window.kernel[axis] as isize).rev();
                places
                    .filter(move |place| (at - place) % stride == 0)
                    .map(move |place| (place as usize, (at - place) / stride))
            };
            let (mut places, mut seen) = (Vec::new(), Vec::new());
            for (row, down) in along(0) {
                for (column, right) in along(1) {
                    places.push(row * window.kernel[1] + column);
                    seen.push([down, right]);
                }
            }
            Self {
                gather: Gather::new(output, [1, 1], pixels, &seen),
                first,
                step: window.stride,
                places,
            }
        };
        firsts.map(class).collect()
    }
}

impl Fixed16Conv2d {
    /// Appends the layer's tensors to the layout. At least one window fits the image; a pass has at most so many images,
    /// of so many lanes.
    pub(crate) fn new(
        name: &str,
        (input, output): (Dims, Dims),
        window: Window,
        bias: bool,
        (rows, lanes): (usize, usize),
        layout: &mut Layout,
    ) -> Self {
        let [height, width] = window.kernel;
        let kernels = [output.channels, input.channels, height, width];
        let [above, before] = window.padding.map(|padding| padding as isize);
        let places = (0..height as isize)
            .flat_map(|down| (0..width as isize).map(move |right| [down - above, right - before]));
        let outputs = [output.height, output.width];
        let places: Vec<[isize; 2]> = places.collect();
        Self {
            window,
            input,
            output,
            weights: ConvWeights::new(name, kernels, bias, layout),
            forward: Gather::new(input, window.stride, outputs, &places),
            classes: Class::of_all(window, input, output),
            scales: RowScales::new(rows, lanes),
            weight_scale: Scale::default(),
        }
    }

    /// Rows of the kernels' matrix.
    fn depth(&self) -> usize {
        self.forward.depth()
    }

    /// Numbers of memory that both slices of so many rows of an image take.
    fn slices_room(rows: usize, image: Dims) -> usize {
        2 * carved((rows * image.len()).div_ceil(4))
    }

    /// Pixels whose errors are multiplied together.
    fn pixels_at_once(&self, pixels: usize) -> usize {
        let most = (ERRORS / (2 * self.output.channels)).max(DEPTH);
        let parts = pixels.div_ceil(most);
        pixels.div_ceil(parts.max(1)).next_multiple_of(DEPTH)
    }

    /// The gradient of the kernels of one lane.
    fn weight_gradient(
        &self,
        threads: &Threads,
        lane: (usize, &Range<usize>),
        x: [&[i8]; 2],
        dy: &[f32],
        gradient: &mut [f32],
        scratch: &mut [f32],
    ) {
        let (lane, images) = lane;
        let [x_scale, dy_scale] = self.scales.of_lane(lane);
        let (depth, channels) = (self.depth(), self.output.channels);
        let first = images.start * self.forward.pixels();
        let pixels = images.len() * self.forward.pixels();
        let at_once = self.pixels_at_once(pixels);
        let (right, scratch) = carve(scratch, right_room(at_once, channels));
        let blocks = match at_once < pixels {
            true => depth.div_ceil(DEPTH) * channels.div_ceil(COLUMNS) * BLOCKS_OF_ROWS,
            false => 0,
        };
        let (totals, room) = carve(scratch, Totals::room(blocks));
        let totals = SharedMut::new(totals_mut(totals));
        let gradient = SharedMut::new(gradient);
        let errors = Matrix::new(dy, channels);
        for start in (0..pixels).step_by(at_once) {
            let count = at_once.min(pixels - start);
            let is_last = start + count == pixels;
            let part = errors.rows(start, count);
            let pair = right_room(count, COLUMNS);
            let right = &mut right[..right_room(count, channels)];
            let pairs = pieces_mut(words_mut(right), pair);
            threads.each(pairs, |pair, to| {
                pack(part.columns(pair * COLUMNS, COLUMNS), dy_scale.by(), to);
            });
            let right = bytes(right);
            let rows = left_room(DEPTH, count);
            threads.each_in(room, rows, 0..depth.div_ceil(DEPTH), |room, _, group| {
                let row = group * DEPTH;
                let count_of_rows = DEPTH.min(depth - row);
                let place = first + start..first + start + count;
                let left = self.gather_turned(x, place, row, count_of_rows, room);
                let product = Product {
                    left,
                    row_scales: &[x_scale],
                    rows: count_of_rows,
                    right,
                    right_scale: dy_scale,
                    columns: channels,
                    depth: count,
                };
                let mut session = Session::new(Engine::current());
                let place = |within: usize, column| (row + within) * channels + column;
                if at_once >= pixels {
                    let (rows, columns) = (0..count_of_rows, 0..channels);
                    // SAFETY: groups do not overlap.
                    return unsafe {
                        product.part(&mut session, rows, columns, None, &gradient, place)
                    };
                }
                for (pair, column) in (0..channels).step_by(COLUMNS).enumerate() {
                    for within in (0..count_of_rows).step_by(ROWS) {
                        let pairs = channels.div_ceil(COLUMNS);
                        let number = (group * pairs + pair) * BLOCKS_OF_ROWS + within / ROWS;
                        // SAFETY: every block has totals of its own.
                        let totals = unsafe { &mut totals.part(number..number + 1)[0] };
                        if start == 0 {
                            totals.clear();
                        }
                        product.add_block(&mut session, within, column, totals);
                        if is_last {
                            let rows = ROWS.min(count_of_rows - within);
                            let size = (rows, COLUMNS.min(channels - column));
                            let place = |row| place(within + row, column);
                            // SAFETY: blocks do not overlap.
                            let to = unsafe { Destination::new(&gradient, size, place) };
                            product.finish_block(within, totals, &to);
                        }
                    }
                }
            });
        }
    }

    /// What some rows of the kernels' matrix see, pixel by pixel, as rows of a left operand.
    fn gather_turned<'a>(
        &self,
        x: [&[i8]; 2],
        pixels: Range<usize>,
        row: usize,
        rows: usize,
        room: &'a mut [f32],
    ) -> Left<'a> {
        let stride = depths(pixels.len()) * DEPTH;
        let half = room.len() / 2;
        let (upper, lower) = room.split_at_mut(half);
        let mut slices = [bytes_mut(upper), bytes_mut(lower)];
        let mut seen = [[[0; DEPTH]; DEPTH]; 2];
        for (number, first) in pixels.clone().step_by(DEPTH).enumerate() {
            for pixel in first..(first + DEPTH).min(pixels.end) {
                let [upper, lower] = &mut seen;
                let to = [upper, lower].map(|slice| &mut slice[pixel - first][..rows]);
                self.forward.copy(x, self.forward.place(pixel), row, to);
            }
            for (slice, to) in seen.iter().zip(&mut slices) {
                transpose_bytes(slice, &mut to[number * DEPTH..], stride);
            }
        }
        let [upper, lower] = slices;
        Left {
            upper,
            lower,
            stride,
        }
    }
}

/// Blocks of rows of a group of 64.
const BLOCKS_OF_ROWS: usize = DEPTH / ROWS;

/// Numbers of memory that both slices of so many rows take as a left operand.
fn left_room(rows: usize, depth: usize) -> usize {
    2 * rows.next_multiple_of(ROWS) * depths(depth) * DEPTH / 4
}

/// Rows that are gathered at a time.
fn rows_at_once(depth: usize) -> usize {
    (GATHERED / (2 * depths(depth).max(1) * DEPTH) / ROWS * ROWS).clamp(ROWS, MOST_ROWS)
}

/// Slices images under their scales.
fn slice_images<'a>(
    threads: &Threads,
    x: &[f32],
    image: Dims,
    scales: &[Scale],
    room: &'a mut [f32],
) -> [&'a [i8]; 2] {
    let (upper, lower) = room.split_at_mut(room.len() / 2);
    let images = (
        pieces(x, image.len()),
        pieces_mut(bytes_mut(upper), image.len()),
        pieces_mut(bytes_mut(lower), image.len()),
    );
    threads.each(images, |number, (x, upper, lower)| {
        slice(x, scales[number].by(), upper, lower);
    });
    [bytes(upper), bytes(lower)]
}

/// Multiplies what the outputs of a gather see with the kernels, and writes each pixel where `place` says.
fn convolve(
    threads: &Threads,
    (gather, source, scales): (&Gather, [&[i8]; 2], &[Scale]),
    (right, right_scale, columns): (&[i8], Scale, usize),
    bias: Option<&[f32]>,
    to: &SharedMut<'_, f32>,
    place: impl Fn([usize; 3]) -> usize + Sync,
    room: &mut [f32],
) {
    let depth = gather.depth();
    let stride = depths(depth) * DEPTH;
    let pixels = scales.len() * gather.pixels();
    let at_once = rows_at_once(depth);
    let tiles = 0..pixels.div_ceil(at_once);
    threads.each_in(room, left_room(at_once, depth), tiles, |room, _, tile| {
        let pixels = tile * at_once..((tile + 1) * at_once).min(pixels);
        let (upper, lower) = room.split_at_mut(room.len() / 2);
        let (upper, lower) = (bytes_mut(upper), bytes_mut(lower));
        let (mut row_scales, mut places) = ([Scale::default(); MOST_ROWS], [0; MOST_ROWS]);
        for (row, pixel) in pixels.clone().enumerate() {
            let at = gather.place(pixel);
            row_scales[row] = scales[at[0]];
            places[row] = place(at);
            let own = row * stride..row * stride + depth;
            gather.copy(source, at, 0, [&mut upper[own.clone()], &mut lower[own]]);
        }
        let product = Product {
            left: Left {
                upper,
                lower,
                stride,
            },
            row_scales: &row_scales[..pixels.len()],
            rows: pixels.len(),
            right,
            right_scale,
            columns,
            depth,
        };
        let (mut session, rows) = (Session::new(Engine::current()), 0..pixels.len());
        let place = |row: usize, column| places[row] + column;
        // SAFETY: every pixel is written once.
        unsafe { product.part(&mut session, rows, 0..columns, bias, to, place) };
    });
}

impl Layer for Fixed16Conv2d {
    fn scratch(&self, threads: &Threads, rows: usize) -> usize {
        let (depth, outputs) = (self.depth(), self.output.channels);
        let room = |gather: &Gather| {
            let at_once = rows_at_once(gather.depth());
            let tiles = (rows * gather.pixels()).div_ceil(at_once);
            threads.rooms(left_room(at_once, gather.depth()), tiles)
        };
        let kernels = carved(right_room(depth, outputs));
        let forward = kernels + Self::slices_room(rows, self.input) + room(&self.forward);
        let by_input = |class: &Class| {
            let right = carved(right_room(class.gather.depth(), self.input.channels));
            right + room(&class.gather)
        };
        let by_input = self.classes.iter().map(by_input).max().unwrap_or(0);
        let turned = carved(depth * outputs);
        let by_input = turned + Self::slices_room(rows, self.output) + by_input;
        let pixels = rows * self.forward.pixels();
        // Lanes of any size: none has more pixels.
        let most = (ERRORS / (2 * outputs)).max(DEPTH).next_multiple_of(DEPTH);
        let at_once = pixels.next_multiple_of(DEPTH).min(most);
        let blocks = depth.div_ceil(DEPTH) * outputs.div_ceil(COLUMNS) * BLOCKS_OF_ROWS;
        let totals = Totals::room(if pixels > at_once { blocks } else { 0 });
        let by_weights = carved(outputs)
            + carved(rows * outputs)
            + carved(depth * outputs)
            + Self::slices_room(rows, self.input)
            + carved(right_room(at_once, outputs))
            + carved(totals)
            + threads.rooms(left_room(DEPTH, at_once), depth.div_ceil(DEPTH));
        forward.max(by_input).max(by_weights)
    }

    fn operation(&self) -> Operation {
        let dims = [self.input, self.output];
        self.weights
            .operation(ConvolutionMethod::Direct, self.window, dims)
    }

    fn forward(
        &mut self,
        pass: Pass<'_>,
        state: &[f32],
        x: &[f32],
        y: &mut [f32],
        scratch: &mut [f32],
    ) {
        let (threads, channels) = (pass.threads, self.output.channels);
        let images = x.len() / self.input.len();
        let kernels = Matrix::new(&state[self.weights.weight.clone()], channels);
        self.weight_scale = Scale::on(threads, kernels.data);
        let by = self.weight_scale.by();
        let (right, scratch) = carve(scratch, right_room(self.depth(), channels));
        pack_all(threads, kernels, by, right);
        let (room, scratch) = carve(scratch, Self::slices_room(images, self.input));
        let scales = self.scales.find(pass, x, self.input.len(), Operand::Input);
        let source = slice_images(threads, x, self.input, scales, room);
        let bias = self.weights.bias.as_ref().map(|bias| &state[bias.clone()]);
        let (output, y) = (self.output, SharedMut::new(y));
        let place = |[image, line, column]: [usize; 3]| {
            ((image * output.height + line) * output.width + column) * channels
        };
        let right = (bytes(right), self.weight_scale, channels);
        let source = (&self.forward, source, scales);
        convolve(threads, source, right, bias, &y, place, scratch);
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
        let (threads, dy) = (pass.threads, &*dy);
        let [inputs, channels] = [self.input.channels, self.output.channels];
        let images = x.len() / self.input.len();
        let scales = self
            .scales
            .find(pass, dy, self.output.len(), Operand::Error);
        if let Some(dx) = dx {
            let kernels = &replica.state()[self.weights.weight.clone()];
            let (turned, scratch) = carve(scratch, kernels.len());
            let order = self.classes.iter().flat_map(|class| &class.places);
            let of_place = inputs * channels;
            for (&place, to) in order.zip(turned.chunks_exact_mut(of_place)) {
                let from = &kernels[place * of_place..(place + 1) * of_place];
                transpose_on(threads, from, channels, to);
            }
            let (room, scratch) = carve(scratch, Self::slices_room(images, self.output));
            let source = slice_images(threads, dy, self.output, scales, room);
            let (input, dx) = (self.input, SharedMut::new(dx));
            let mut turned = &*turned;
            for class in &self.classes {
                let (own, rest) = turned.split_at(class.places.len() * of_place);
                turned = rest;
                let [down, right] = class.first;
                let place = |[image, line, column]: [usize; 3]| {
                    let line = image * input.height + line * class.step[0] + down;
                    (line * input.width + column * class.step[1] + right) * inputs
                };
                if own.is_empty() {
                    // The windows leave these pixels out.
                    for pixel in 0..images * class.gather.pixels() {
                        let at = place(class.gather.place(pixel));
                        // SAFETY: `dx` is borrowed mutably.
                        unsafe { dx.part(at..at + inputs) }.fill(0.0);
                    }
                    continue;
                }
                let kernels = Matrix::new(own, inputs);
                let (right, scratch) = carve(scratch, right_room(kernels.rows, inputs));
                pack_all(threads, kernels, self.weight_scale.by(), right);
                let right = (bytes(right), self.weight_scale, inputs);
                let source = (&class.gather, source, scales);
                convolve(threads, source, right, None, &dx, place, scratch);
            }
        }
        let (d_bias, scratch) = carve(scratch, channels);
        let (sums, scratch) = carve(scratch, pass.largest_lane() * channels);
        let (d_weight, scratch) = carve(scratch, self.depth() * channels);
        let (room, scratch) = carve(scratch, Self::slices_room(images, self.input));
        let scales = self.scales.again(pass, Operand::Input);
        let source = slice_images(threads, x, self.input, scales, room);
        for (lane, rows) in pass.lanes.iter().enumerate() {
            let dy = of_rows(dy, rows, self.output.len());
            if self.weights.bias.is_some() {
                let sums = &mut sums[..rows.len() * channels];
                bias_gradient(threads, dy, self.output, sums, d_bias);
            }
            self.weight_gradient(threads, (lane, rows), source, dy, d_weight, scratch);
            let gradient = self.weights.gradient(d_weight, d_bias);
            let chunks = self.weights.chunks.clone();
            replica.gradient(lane..lane + 1, chunks, &gradient);
        }
    }
}

/// Packs all columns of a right operand.
fn pack_all(threads: &Threads, matrix: Matrix<'_>, by: f32, to: &mut [f32]) {
    let pairs = pieces_mut(words_mut(to), right_room(matrix.rows, COLUMNS));
    threads.each(pairs, |pair, to| {
        pack(matrix.columns(pair * COLUMNS, COLUMNS), by, to);
    });
}
