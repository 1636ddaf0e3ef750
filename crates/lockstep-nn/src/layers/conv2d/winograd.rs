//! Winograd's convolution with 3 x 3 windows that move by one pixel: F(4 x 4, 3 x 3).
//!
//! The output is cut into tiles of 4 x 4 pixels, each a function of 6 x 6 pixels of the input. Pixels and
//! weights are transformed to 36 *planes*, one for each place in a tile, between which nothing is summed:
//! a convolution is then 36 matrix products of channels, with a quarter of the multiplications. The input
//! gradient is the same with the weights turned about; the weight gradient is 36 products the other way.
//!
//! Tiles are computed block by block, so that what is transformed stays in a cache. Threads take blocks where there
//! are enough of them ([`Split::Blocks`]). Where there are few tiles and many weights, each of them would read all
//! weights for little: then all threads work on one block, plane by plane ([`Split::Planes`]).

use super::super::linear::transpose_columns;
use super::super::{carve, carved};
use super::tiles::{
    Planes, Tiling, transform_outputs, transform_tiles, transform_weight_gradients,
    transform_weights,
};
use super::transform::{OfOutputGradients, OfPixels};
use crate::dims::Dims;
use crate::gemm::{Accumulate, Left, Shape, Span, Walk, nested, nested_at};
use crate::threads::{SharedMut, Threads, rows_of_a_tile};
use std::ops::Range;

/// Places of a tile.
const PLANES: usize = 36;

/// Numbers of a block of transformed tiles that stay in the second-level cache, also where a neighbour on
/// the same core has half of it.
const BLOCK: usize = 128 * 1024;

/// Tiles below which the weights would be read again too often.
const MIN_TILES: usize = 64;

/// Channels come in groups of so many: the widest vector.
const GROUP: usize = 16;

/// A convolution of whole groups of channels.
pub(super) struct Winograd {
    input: Dims,
    output: Dims,
    padding: [usize; 2],
}

/// How the tiles of a convolution are shared among threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Split {
    /// Each thread computes blocks of so many tiles.
    Blocks(usize),
    /// All threads compute a block of so many tiles together.
    Planes(usize),
}

impl Split {
    /// For so many tiles, and so many channels of input and output.
    fn new(threads: usize, count: usize, [inputs, outputs]: [usize; 2]) -> Self {
        let most = block(inputs + outputs);
        if threads == 1 {
            return Self::Blocks(most.min(count.max(1)));
        }
        // To read the weights again costs less than to bring the tiles to other threads and back.
        let is_worth = |tiles: usize| inputs * outputs <= 2 * tiles * (inputs + outputs);
        let tiles_of = |rounds| count.div_ceil(threads * rounds).clamp(1, most);
        let rounds = (1..=4).rev().find(|&rounds| is_worth(tiles_of(rounds)));
        match rounds {
            Some(rounds) => Self::Blocks(tiles_of(rounds)),
            None => Self::Planes((threads * most).min(count.max(1))),
        }
    }
}

impl Winograd {
    /// Whether it can be used at all, and is worth it.
    pub(super) fn suits(input: Dims, output: Dims, window: super::Window) -> bool {
        window.kernel == [3, 3]
            && window.stride == [1, 1]
            && window.padding.iter().all(|&padding| padding <= 2)
            && input.channels.is_multiple_of(GROUP)
            && output.channels.is_multiple_of(GROUP)
    }

    pub(super) fn new(input: Dims, output: Dims, padding: [usize; 2]) -> Self {
        Self {
            input,
            output,
            padding,
        }
    }

    fn channels(&self) -> [usize; 2] {
        [self.input.channels, self.output.channels]
    }

    /// Numbers of scratch memory for so many images.
    pub(super) fn scratch(&self, threads: &Threads, rows: usize) -> usize {
        let [inputs, outputs] = self.channels();
        let weights = inputs * outputs;
        let (count, most) = (threads.count(), block(inputs + outputs));
        let tiles = |tiling: Tiling| {
            let all = rows * tiling.count();
            let together = self.room((count * most).min(all));
            let each = threads.rooms(self.room(all.div_ceil(count).min(most)), all);
            together.max(each)
        };
        let turned = threads.rooms(9 * GROUP * inputs, outputs / GROUP);
        let tiles = tiles(self.forth()).max(tiles(self.back()));
        let forth = carved(PLANES * weights) + turned.max(tiles);
        forth.max(carved(PLANES * weights) + carved(9 * weights) + tiles)
    }

    /// Numbers that so many tiles take when they are transformed.
    fn room(&self, tiles: usize) -> usize {
        let [inputs, outputs] = self.channels();
        carved(PLANES * plane(tiles, inputs)) + carved(PLANES * plane(tiles, outputs))
    }

    /// The output's tiles.
    fn forth(&self) -> Tiling {
        Tiling::new(self.output)
    }

    /// The input's tiles, for its gradient.
    fn back(&self) -> Tiling {
        Tiling::new(self.input)
    }

    pub(super) fn forward(
        &self,
        threads: &Threads,
        weight: &[f32],
        bias: Option<&[f32]>,
        x: &[f32],
        y: &mut [f32],
        scratch: &mut [f32],
    ) {
        let size = self.input.channels * self.output.channels;
        let (u, scratch) = carve(scratch, PLANES * size);
        let to = SharedMut::new(u);
        let part = rows_of_a_tile(PLANES * GROUP) * GROUP;
        threads.each(0..size.div_ceil(part), |_, tile| {
            let at = tile * part;
            let count = part.min(size - at);
            // SAFETY: parts do not overlap.
            unsafe { transform_weights((&weight[at..], size), count, (&to, at, size)) };
        });
        let tiles = self.forth();
        let from = tiles.under(self.input, self.padding);
        convolve(threads, u, bias, (x, from), (y, tiles), scratch);
    }

    pub(super) fn input_gradient(
        &self,
        threads: &Threads,
        weight: &[f32],
        dy: &[f32],
        dx: &mut [f32],
        scratch: &mut [f32],
    ) {
        let [inputs, outputs] = self.channels();
        let size = inputs * outputs;
        let (u, scratch) = carve(scratch, PLANES * size);
        let to = SharedMut::new(u);
        // Some output channels, turned about, at a time.
        let rows = GROUP * inputs;
        threads.each_in(scratch, 9 * rows, 0..outputs / GROUP, |turned, _, group| {
            let places = weight.chunks_exact(size);
            for (from, to) in places.zip(turned.chunks_exact_mut(rows).rev()) {
                transpose_columns(from, outputs, group * GROUP, to);
            }
            // SAFETY: groups do not overlap.
            unsafe { transform_weights((turned, rows), rows, (&to, group * rows, size)) };
        });
        let tiles = self.back();
        let from = tiles.under(self.output, self.padding.map(|padding| 2 - padding));
        convolve(threads, u, None, (dy, from), (dx, tiles), scratch);
    }

    /// Computes the weight gradient into scratch memory.
    pub(super) fn weight_gradient<'a>(
        &self,
        threads: &Threads,
        x: &[f32],
        dy: &[f32],
        scratch: &'a mut [f32],
    ) -> &'a [f32] {
        let [inputs, outputs] = self.channels();
        let size = inputs * outputs;
        let to = self.forth();
        let from = to.under(self.input, self.padding);
        let count = x.len() / self.input.len() * to.count();
        let tiles = (threads.count() * block(inputs + outputs)).min(count.max(1));
        let (gradient, scratch) = carve(scratch, 9 * size);
        let (products, scratch) = carve(scratch, PLANES * size);
        let (v, scratch) = carve(scratch, PLANES * plane(tiles, inputs));
        let (z, _) = carve(scratch, PLANES * plane(tiles, outputs));
        let cut = PlaneCut::new(threads, inputs);
        for first in (0..count).step_by(tiles) {
            let range = first..(first + tiles).min(count);
            let of_pixels = Planes {
                first,
                plane: plane(tiles, inputs),
            };
            let of_gradients = Planes {
                first,
                plane: plane(tiles, outputs),
            };
            let (to_v, to_z) = (SharedMut::new(v), SharedMut::new(z));
            each_part(threads, &range, inputs + outputs, |part| {
                // SAFETY: parts do not overlap.
                unsafe {
                    transform_tiles::<OfPixels, 6>((x, from), part.clone(), (&to_v, of_pixels));
                    let to_z = (&to_z, of_gradients);
                    transform_tiles::<OfOutputGradients, 4>((dy, to), part, to_z);
                }
            });
            let into = if first == 0 {
                Accumulate::Replace
            } else {
                Accumulate::Add
            };
            let sums = SharedMut::new(products);
            threads.each(0..cut.count(), |_, tile| {
                let (i, rows) = cut.tile(tile);
                let left = Left::transposed(&v[i * of_pixels.plane + rows.start..], inputs);
                let right = (&z[i * of_gradients.plane..], outputs);
                let shape = Shape {
                    rows: Span::flat(rows.len()),
                    columns: outputs,
                    depth: Span::flat(range.len()),
                };
                let at = i * size + rows.start * outputs;
                // SAFETY: the tiles of the products do not overlap.
                unsafe { nested_at(shape, left, right, (&sums, at), Walk::flat(outputs), into) };
            });
        }
        let to = SharedMut::new(gradient);
        let part = rows_of_a_tile(PLANES * GROUP) * GROUP;
        threads.each(0..size.div_ceil(part), |_, tile| {
            let at = tile * part;
            let count = part.min(size - at);
            let from = (&products[at..], size);
            // SAFETY: parts do not overlap.
            unsafe { transform_weight_gradients(from, count, (&to, at, size)) };
        });
        gradient
    }
}

/// How many tiles are transformed at a time, for so many channels in all.
fn block(channels: usize) -> usize {
    (BLOCK / (PLANES * channels)).max(MIN_TILES)
}

/// Numbers from one plane of a block to the next. Planes that are a power of two apart would get in each
/// other's way in the cache.
fn plane(tiles: usize, channels: usize) -> usize {
    tiles * channels + GROUP
}

/// Calls `work` with parts of a range of tiles, which have so many channels in all.
fn each_part(
    threads: &Threads,
    range: &Range<usize>,
    channels: usize,
    work: impl Fn(Range<usize>) + Sync,
) {
    let part = rows_of_a_tile(PLANES * channels);
    threads.each(0..range.len().div_ceil(part), |_, number| {
        let start = range.start + number * part;
        work(start..(start + part).min(range.end));
    });
}

/// The planes, each cut into parts of so many rows or columns, which are whole groups.
#[derive(Clone, Copy)]
struct PlaneCut {
    length: usize,
    parts: usize,
}

impl PlaneCut {
    /// So that there are some tiles for each thread.
    fn new(threads: &Threads, length: usize) -> Self {
        let wanted = match threads.count() {
            1 => 1,
            threads => (4 * threads).div_ceil(PLANES),
        };
        let parts = wanted.min(length / GROUP);
        Self { length, parts }
    }

    fn count(self) -> usize {
        PLANES * self.parts
    }

    /// The plane of a tile, and its part of it.
    fn tile(self, number: usize) -> (usize, Range<usize>) {
        let place = |part| part * (self.length / GROUP) / self.parts * GROUP;
        let part = number % self.parts;
        (number / self.parts, place(part)..place(part + 1))
    }
}

/// Convolves images, whose tiles lie as in `from`, into the tiles of `to`, with transformed weights.
fn convolve(
    threads: &Threads,
    u: &[f32],
    bias: Option<&[f32]>,
    (x, from): (&[f32], Tiling),
    (y, to): (&mut [f32], Tiling),
    scratch: &mut [f32],
) {
    let [inputs, outputs] = [from.image.channels, to.image.channels];
    let size = inputs * outputs;
    let count = x.len() / from.image.len() * to.count();
    let y = SharedMut::new(y);
    let planes = |first, tiles, channels| Planes {
        first,
        plane: plane(tiles, channels),
    };
    match Split::new(threads.count(), count, [inputs, outputs]) {
        Split::Blocks(tiles) => {
            let sizes = [inputs, outputs].map(|channels| PLANES * plane(tiles, channels));
            let room = carved(sizes[0]) + carved(sizes[1]);
            let blocks = 0..count.div_ceil(tiles);
            threads.each_in(scratch, room, blocks, |room, _, number| {
                let range = number * tiles..((number + 1) * tiles).min(count);
                let (v, room) = carve(room, sizes[0]);
                let (m, _) = carve(room, sizes[1]);
                let of_x = planes(range.start, tiles, inputs);
                let of_y = planes(range.start, tiles, outputs);
                let to_v = (&SharedMut::new(v), of_x);
                // SAFETY: the planes are this thread's.
                unsafe { transform_tiles::<OfPixels, 6>((x, from), range.clone(), to_v) };
                for (i, u) in u.chunks_exact(size).enumerate() {
                    let v = Left::rows(&v[i * of_x.plane..], inputs);
                    let m = &mut m[i * of_y.plane..];
                    let shape = Shape {
                        rows: Span::flat(range.len()),
                        columns: outputs,
                        depth: Span::flat(inputs),
                    };
                    let into = Accumulate::Replace;
                    nested(shape, v, (u, outputs), m, Walk::flat(outputs), into);
                }
                // SAFETY: blocks do not overlap.
                unsafe { transform_outputs((m, of_y), range, bias, (&y, to)) };
            });
        }
        Split::Planes(tiles) => {
            let (v, scratch) = carve(scratch, PLANES * plane(tiles, inputs));
            let (m, _) = carve(scratch, PLANES * plane(tiles, outputs));
            let cut = PlaneCut::new(threads, outputs);
            for first in (0..count).step_by(tiles) {
                let range = first..(first + tiles).min(count);
                let of_x = planes(first, tiles, inputs);
                let of_y = planes(first, tiles, outputs);
                let to_v = SharedMut::new(v);
                each_part(threads, &range, inputs, |part| {
                    let to_v = (&to_v, of_x);
                    // SAFETY: parts do not overlap.
                    unsafe { transform_tiles::<OfPixels, 6>((x, from), part, to_v) };
                });
                let products = SharedMut::new(m);
                threads.each(0..cut.count(), |_, tile| {
                    let (i, columns) = cut.tile(tile);
                    let v = Left::rows(&v[i * of_x.plane..], inputs);
                    let u = (&u[i * size + columns.start..], outputs);
                    let shape = Shape {
                        rows: Span::flat(range.len()),
                        columns: columns.len(),
                        depth: Span::flat(inputs),
                    };
                    let m = (&products, i * of_y.plane + columns.start);
                    let into = Accumulate::Replace;
                    // SAFETY: the tiles of the products do not overlap.
                    unsafe { nested_at(shape, v, u, m, Walk::flat(outputs), into) };
                });
                each_part(threads, &range, outputs, |part| {
                    // SAFETY: parts do not overlap.
                    unsafe { transform_outputs((m, of_y), part, bias, (&y, to)) };
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_take_blocks_where_there_are_tiles_enough_for_the_weights() {
        // ResNet-18 at 224 pixels: 16 images, and two.
        let split = |images, side: usize, channels| {
            let count = images * side.div_ceil(4) * side.div_ceil(4);
            Split::new(16, count, [channels; 2])
        };
        assert_eq!(split(16, 56, 64), Split::Blocks(49));
        assert_eq!(split(2, 56, 64), Split::Blocks(25));
        assert_eq!(split(16, 28, 128), Split::Blocks(49));
        assert_eq!(split(16, 14, 256), Split::Planes(256));
        assert_eq!(split(16, 7, 512), Split::Planes(64));
        assert_eq!(Split::new(1, 64, [512; 2]), Split::Blocks(64));
    }
}
