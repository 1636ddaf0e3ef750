//! Windows of any kind: what they see is gathered into rows of a left operand.
//!
//! The gradient by the input is the same with the kernels turned round; with a stride the pixels of the input fall into
//! classes, each of which meets its own part of the kernels. The gradient of the kernels is one sum over all pixels of a
//! lane: rows of it are what a place of the kernel sees, pixel by pixel.

use super::super::block::{COLUMNS, DEPTH, Left, ROWS, Session};
use super::super::cast::{bytes, bytes_mut, totals_mut, words_mut};
use super::super::engine::Engine;
use super::super::gather::Gather;
use super::super::product::{Product, Totals, Turn, apart};
use super::super::right::{Matrix, depths, left_room, pack, right_room};
use super::super::scale::Scale;
use super::super::slices::slice;
use super::super::transpose::transpose_bytes;
use super::{BLOCKS_OF_ROWS, Shape, pack_all};
use crate::dims::Dims;
use crate::layers::linear::transpose_on;
use crate::layers::window::Window;
use crate::layers::{carve, carved};
use crate::threads::{SharedMut, Threads, pieces, pieces_mut};
use std::ops::Range;

/// Bytes of the rows that are gathered at a time: they stay in the second-level cache beside a pair of columns.
const GATHERED: usize = 512 * 1024;

/// Rows that are gathered at a time, at the most.
const MOST_ROWS: usize = 128;

/// A convolution whose windows are gathered.
pub(super) struct Gathered {
    shape: Shape,
    forward: Gather,
    classes: Vec<Class>,
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

impl Gathered {
    pub(super) fn new(shape: Shape) -> Self {
        let Shape {
            window,
            input,
            output,
        } = shape;
        let [height, width] = window.kernel.map(|side| side as isize);
        let [above, before] = window.padding.map(|padding| padding as isize);
        let of_line = |down| (0..width).map(move |right| [down - above, right - before]);
        let places: Vec<[isize; 2]> = (0..height).flat_map(of_line).collect();
        let outputs = [output.height, output.width];
        Self {
            shape,
            forward: Gather::new(input, window.stride, outputs, &places),
            classes: Class::of_all(window, input, output),
        }
    }

    /// Numbers of scratch memory for so many images: forward, and the gradient by the input.
    pub(super) fn scratch(&self, threads: &Threads, images: usize) -> usize {
        let Shape { input, output, .. } = self.shape;
        let room = |gather: &Gather| {
            let at_once = rows_at_once(gather.depth());
            let tiles = (images * gather.pixels()).div_ceil(at_once);
            threads.rooms(left_room(at_once, gather.depth()), tiles)
        };
        let kernels = |gather: &Gather, columns| carved(right_room(gather.depth(), columns));
        let forward = kernels(&self.forward, output.channels)
            + slices_room(images, input)
            + room(&self.forward);
        let classes = self.classes.iter().map(|class| &class.gather);
        let back = classes.map(|gather| kernels(gather, input.channels) + room(gather));
        let back = back.max().unwrap_or(0);
        forward.max(carved(self.shape.weights()) + slices_room(images, output) + back)
    }

    /// The same for the gradient of the kernels.
    pub(super) fn gradient_scratch(&self, threads: &Threads, images: usize) -> usize {
        let (depth, channels) = (self.shape.depth(), self.shape.output.channels);
        let pixels = (images * self.forward.pixels()).next_multiple_of(DEPTH);
        let most = self.shape.most_places_at_once();
        let at_once = pixels.min(most);
        let groups = depth.div_ceil(DEPTH);
        let blocks = groups * channels.div_ceil(COLUMNS) * BLOCKS_OF_ROWS;
        let totals = Totals::room(if pixels > most { blocks } else { 0 });
        slices_room(images, self.shape.input)
            + carved(right_room(at_once, channels))
            + carved(totals)
            + threads.rooms(left_room(DEPTH, at_once), groups)
    }

    pub(super) fn forward(
        &self,
        threads: &Threads,
        (kernels, scale): (&[f32], Scale),
        bias: Option<&[f32]>,
        (x, scales): (&[f32], &[Scale]),
        y: &mut [f32],
        scratch: &mut [f32],
    ) {
        let Shape { input, output, .. } = self.shape;
        let channels = output.channels;
        let kernels = Matrix::new(kernels, channels);
        let (right, scratch) = carve(scratch, right_room(kernels.rows, channels));
        pack_all(threads, kernels, scale.by(), right);
        let (room, scratch) = carve(scratch, slices_room(scales.len(), input));
        let source = slice_images(threads, x, input, scales, room);
        let y = SharedMut::new(y);
        let place = |[image, line, column]: [usize; 3]| {
            ((image * output.height + line) * output.width + column) * channels
        };
        let right = (bytes(right), scale, channels);
        let source = (&self.forward, source, scales);
        convolve(threads, source, right, bias, &y, place, scratch);
    }

    /// Computes the gradient by the input, class by class.
    pub(super) fn input_gradient(
        &self,
        threads: &Threads,
        (kernels, scale): (&[f32], Scale),
        (dy, scales): (&[f32], &[Scale]),
        dx: &mut [f32],
        scratch: &mut [f32],
    ) {
        let Shape { input, output, .. } = self.shape;
        let [inputs, channels] = [input.channels, output.channels];
        let (turned, scratch) = carve(scratch, kernels.len());
        let order = self.classes.iter().flat_map(|class| &class.places);
        let of_place = inputs * channels;
        for (&place, to) in order.zip(turned.chunks_exact_mut(of_place)) {
            let from = &kernels[place * of_place..(place + 1) * of_place];
            transpose_on(threads, from, channels, to);
        }
        let images = scales.len();
        let (room, scratch) = carve(scratch, slices_room(images, output));
        let source = slice_images(threads, dy, output, scales, room);
        let (dx, mut turned) = (SharedMut::new(dx), &*turned);
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
            pack_all(threads, kernels, scale.by(), right);
            let right = (bytes(right), scale, inputs);
            let source = (&class.gather, source, scales);
            convolve(threads, source, right, None, &dx, place, scratch);
        }
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
        let Shape { input, output, .. } = self.shape;
        let (depth, channels) = (self.shape.depth(), output.channels);
        let images = x.len() / input.len();
        let (room, scratch) = carve(scratch, slices_room(images, input));
        let x = slice_images(threads, x, input, &[x_scale], room);
        let pixels = images * self.forward.pixels();
        let at_once = self.shape.places_at_once(pixels);
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
                let place = start..start + count;
                let left = self.gather_turned(x, place, row, count_of_rows, room);
                let product = Product {
                    left,
                    offsets: None,
                    row_scales: &[x_scale],
                    rows_of_scale: count_of_rows,
                    rows: count_of_rows,
                    right,
                    right_scale: dy_scale,
                    columns: channels,
                    depth: count,
                };
                let mut session = Session::new(Engine::current());
                let place = |within: usize, places: &mut [usize]| {
                    apart(channels, 0)(row + within, places);
                };
                let turn = Turn {
                    totals: (at_once < pixels).then_some(&totals),
                    first_row: row,
                    is_first: start == 0,
                    is_last: start + count == pixels,
                };
                let rows = 0..count_of_rows;
                // SAFETY: groups have other rows, and so other totals and other numbers of the gradient.
                unsafe { product.turn(&mut session, rows, &turn, &gradient, place) };
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
                let to = &mut to[number * DEPTH..];
                transpose_bytes(slice.as_flattened(), DEPTH, DEPTH, to, stride);
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

/// Numbers of memory that both slices of so many images take.
fn slices_room(images: usize, image: Dims) -> usize {
    2 * carved((images * image.len()).div_ceil(4))
}

/// Rows that are gathered at a time.
fn rows_at_once(depth: usize) -> usize {
    (GATHERED / (2 * depths(depth).max(1) * DEPTH) / ROWS * ROWS).clamp(ROWS, MOST_ROWS)
}

/// Slices images, each under its scale or all under one.
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
        let scale = scales[number.min(scales.len() - 1)];
        slice(x, scale.by(), upper, lower);
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
            offsets: None,
            row_scales: &row_scales[..pixels.len()],
            rows_of_scale: 1,
            rows: pixels.len(),
            right,
            right_scale,
            columns,
            depth,
        };
        let (mut session, rows) = (Session::new(Engine::current()), 0..pixels.len());
        let place = |row: usize, to: &mut [usize]| {
            to.copy_from_slice(&places[row..row + to.len()]);
        };
        // SAFETY: every pixel is written once.
        unsafe { product.part(&mut session, rows, 0..columns, bias, to, place) };
    });
}
