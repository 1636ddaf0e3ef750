//! Winograd's convolution with 3 x 3 windows that move by one pixel: F(4 x 4, 3 x 3).
//!
//! The output is cut into tiles of 4 x 4 pixels, each a function of 6 x 6 pixels of the input. Pixels and
//! weights are transformed to 36 *planes*, one for each place in a tile, between which nothing is summed:
//! a convolution is then 36 matrix products of channels, with a quarter of the multiplications. The input
//! gradient is the same with the weights turned about; the weight gradient is 36 products the other way.

use super::super::linear::transpose;
use super::super::{carve, carved};
use super::tiles::{OutputTransform, TileTransform, Tiling, WeightGradients, WeightTransform};
use super::transform::{OfOutputGradients, OfPixels};
use crate::dims::Dims;
use crate::gemm::{Accumulate, Left, dispatch};
use crate::threads::Threads;
use std::marker::PhantomData;
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
    compute: Threads,
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

    pub(super) fn new(input: Dims, output: Dims, padding: [usize; 2], compute: &Threads) -> Self {
        Self {
            input,
            output,
            padding,
            compute: compute.clone(),
        }
    }

    /// Numbers of scratch memory for so many images.
    pub(super) fn scratch(&self, rows: usize) -> usize {
        let [inputs, outputs] = [self.input.channels, self.output.channels];
        let size = PLANES * inputs * outputs;
        let block = |tiling: Tiling| {
            let tiles = block(inputs + outputs, rows * tiling.count());
            carved(PLANES * plane(tiles, inputs)) + carved(PLANES * plane(tiles, outputs))
        };
        let turned = carved(9 * inputs * outputs);
        carved(size) + turned + block(self.forth()).max(block(self.back()))
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
        weight: &[f32],
        bias: Option<&[f32]>,
        x: &[f32],
        y: &mut [f32],
        scratch: &mut [f32],
    ) {
        let tiles = self.forth();
        let from = tiles.under(self.input, self.padding);
        convolve(&self.compute, weight, bias, (x, from), (y, tiles), scratch);
    }

    pub(super) fn input_gradient(
        &self,
        weight: &[f32],
        dy: &[f32],
        dx: &mut [f32],
        scratch: &mut [f32],
    ) {
        let [inputs, outputs] = [self.input.channels, self.output.channels];
        let (turned, scratch) = carve(scratch, weight.len());
        let places = weight.chunks_exact(inputs * outputs);
        for (from, to) in places.zip(turned.chunks_exact_mut(inputs * outputs).rev()) {
            transpose(from, outputs, to);
        }
        let tiles = self.back();
        let from = tiles.under(self.output, self.padding.map(|padding| 2 - padding));
        convolve(
            &self.compute,
            turned,
            None,
            (dy, from),
            (dx, tiles),
            scratch,
        );
    }

    /// Computes the whole weight gradient into scratch memory.
    pub(super) fn weight_gradient<'a>(
        &self,
        x: &[f32],
        dy: &[f32],
        scratch: &'a mut [f32],
    ) -> WinogradWeightGradient<'a> {
        let [inputs, outputs] = [self.input.channels, self.output.channels];
        let to = self.forth();
        let from = to.under(self.input, self.padding);
        let count = x.len() / self.input.len() * to.count();
        let tiles = block(inputs + outputs, count);
        let (products, scratch) = carve(scratch, PLANES * inputs * outputs);
        let (v, scratch) = carve(scratch, PLANES * plane(tiles, inputs));
        let (z, _) = carve(scratch, PLANES * plane(tiles, outputs));
        for first in (0..count).step_by(tiles) {
            let range = first..(first + tiles).min(count);
            dispatch(TileTransform {
                from: x,
                tiling: from,
                range: range.clone(),
                plane: plane(tiles, inputs),
                to: v,
                by: PhantomData::<OfPixels>,
            });
            dispatch(TileTransform {
                from: dy,
                tiling: to,
                range: range.clone(),
                plane: plane(tiles, outputs),
                to: z,
                by: PhantomData::<OfOutputGradients>,
            });
            let into = if first == 0 {
                Accumulate::Replace
            } else {
                Accumulate::Add
            };
            for (i, product) in products.chunks_exact_mut(inputs * outputs).enumerate() {
                let v = Left::transposed(&v[i * plane(tiles, inputs)..], inputs);
                let z = &z[i * plane(tiles, outputs)..];
                let shape = (inputs, outputs, range.len());
                let product = (product, outputs);
                self.compute.gemm(shape, v, (z, outputs), product, into);
            }
        }
        dispatch(WeightGradients {
            planes: products,
            size: inputs * outputs,
        });
        WinogradWeightGradient {
            gradient: &products[..9 * inputs * outputs],
            outputs,
        }
    }
}

/// A weight gradient that is finished.
pub(super) struct WinogradWeightGradient<'a> {
    gradient: &'a [f32],
    outputs: usize,
}

impl WinogradWeightGradient<'_> {
    /// Writes some rows of the gradient.
    pub(super) fn fill(&self, rows: Range<usize>, gradient: &mut [f32]) {
        let range = rows.start * self.outputs..rows.end * self.outputs;
        gradient.copy_from_slice(&self.gradient[range]);
    }
}

/// How many of `count` tiles are transformed at a time, for so many channels in all.
fn block(channels: usize, count: usize) -> usize {
    (BLOCK / (PLANES * channels))
        .max(MIN_TILES)
        .min(count.max(1))
}

/// Numbers from one plane of a block to the next. Planes that are a power of two apart would get in each
/// other's way in the cache.
fn plane(tiles: usize, channels: usize) -> usize {
    tiles * channels + GROUP
}

/// Convolves images, whose tiles lie as in `from`, into the tiles of `to`.
fn convolve(
    compute: &Threads,
    weight: &[f32],
    bias: Option<&[f32]>,
    (x, from): (&[f32], Tiling),
    (y, to): (&mut [f32], Tiling),
    scratch: &mut [f32],
) {
    let [inputs, outputs] = [from.image.channels, to.image.channels];
    let count = x.len() / from.image.len() * to.count();
    let tiles = block(inputs + outputs, count);
    let (u, scratch) = carve(scratch, PLANES * inputs * outputs);
    let (v, scratch) = carve(scratch, PLANES * plane(tiles, inputs));
    let (m, _) = carve(scratch, PLANES * plane(tiles, outputs));
    dispatch(WeightTransform {
        from: weight,
        size: inputs * outputs,
        to: u,
    });
    for first in (0..count).step_by(tiles) {
        let range = first..(first + tiles).min(count);
        dispatch(TileTransform {
            from: x,
            tiling: from,
            range: range.clone(),
            plane: plane(tiles, inputs),
            to: v,
            by: PhantomData::<OfPixels>,
        });
        for (i, u) in u.chunks_exact(inputs * outputs).enumerate() {
            let v = Left::rows(&v[i * plane(tiles, inputs)..], inputs);
            let m = &mut m[i * plane(tiles, outputs)..];
            let shape = (range.len(), outputs, inputs);
            compute.gemm(shape, v, (u, outputs), (m, outputs), Accumulate::Replace);
        }
        dispatch(OutputTransform {
            from: m,
            plane: plane(tiles, outputs),
            tiling: to,
            range,
            bias,
            to: y,
        });
    }
}
