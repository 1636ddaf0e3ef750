//! Winograd's convolution with 3 x 3 windows that move by one pixel: F(4 x 4, 3 x 3).
//!
//! The output is cut into tiles of 4 x 4 pixels, each a function of 6 x 6 pixels of the input. Pixels and
//! weights are transformed to 36 *planes*, one for each place in a tile, between which nothing is summed:
//! a convolution is then 36 matrix products of channels, with a quarter of the multiplications. The input
//! gradient is the same with the weights turned about; the weight gradient is 36 products the other way.

use super::super::linear::transpose;
use super::super::{carve, carved};
use super::transform::{
    OfOutputGradients, OfOutputs, OfPixels, OfWeightGradients, OfWeights, gather, spread, square,
};
use crate::dims::Dims;
use crate::gemm::{Into, Kernel, Left, Vector, dispatch, gemm};
use std::ops::Range;

/// Places of a tile.
const PLANES: usize = 36;

/// Numbers of a block of transformed tiles that stay in the second-level cache.
const BLOCK: usize = 320 * 1024;

/// Channels come in groups of so many: the widest vector.
const GROUP: usize = 16;

/// The place of a pixel that no image has.
const OUTSIDE: usize = usize::MAX;

/// A convolution of whole groups of channels.
pub(super) struct Winograd {
    input: Dims,
    output: Dims,
    padding: [usize; 2],
}

/// An image and how tiles lie on it: tile `(i, j)` begins at pixel `(4 i - top, 4 j - left)`.
#[derive(Clone, Copy)]
struct Tiling {
    image: Dims,
    /// Tiles from top to bottom and from left to right.
    tiles: [usize; 2],
    margin: [usize; 2],
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
        convolve(weight, bias, (x, from), (y, tiles), scratch);
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
        convolve(turned, None, (dy, from), (dx, tiles), scratch);
    }

    /// Computes the whole weight gradient into scratch memory.
    pub(super) fn weight_gradient<'a>(
        &self,
        x: &[f32],
        dy: &[f32],
        scratch: &'a mut [f32],
    ) -> WeightGradient<'a> {
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
            dispatch(Pixels {
                from: x,
                tiling: from,
                range: range.clone(),
                plane: plane(tiles, inputs),
                to: v,
            });
            dispatch(OutputGradients {
                from: dy,
                tiling: to,
                range: range.clone(),
                plane: plane(tiles, outputs),
                to: z,
            });
            let into = if first == 0 { Into::Replace } else { Into::Add };
            for (i, product) in products.chunks_exact_mut(inputs * outputs).enumerate() {
                let v = Left::transposed(&v[i * plane(tiles, inputs)..], inputs);
                let z = &z[i * plane(tiles, outputs)..];
                let shape = (inputs, outputs, range.len());
                gemm(shape, v, z, outputs, product, outputs, into);
            }
        }
        dispatch(WeightGradients {
            planes: products,
            size: inputs * outputs,
        });
        WeightGradient {
            gradient: &products[..9 * inputs * outputs],
            outputs,
        }
    }
}

/// A weight gradient that is finished.
pub(super) struct WeightGradient<'a> {
    gradient: &'a [f32],
    outputs: usize,
}

impl WeightGradient<'_> {
    /// Writes some rows of the gradient.
    pub(super) fn fill(&self, rows: Range<usize>, gradient: &mut [f32]) {
        let range = rows.start * self.outputs..rows.end * self.outputs;
        gradient.copy_from_slice(&self.gradient[range]);
    }
}

/// How many of `count` tiles are transformed at a time, for so many channels in all.
fn block(channels: usize, count: usize) -> usize {
    (BLOCK / (PLANES * channels)).max(24).min(count.max(1))
}

/// Numbers from one plane of a block to the next. Planes that are a power of two apart would get in each
/// other's way in the cache.
fn plane(tiles: usize, channels: usize) -> usize {
    tiles * channels + GROUP
}

impl Tiling {
    /// The tiles that cover an image.
    fn new(image: Dims) -> Self {
        Self {
            image,
            tiles: [image.height.div_ceil(4), image.width.div_ceil(4)],
            margin: [0, 0],
        }
    }

    /// The same tiles on an image that has a margin.
    fn under(self, image: Dims, margin: [usize; 2]) -> Self {
        Self {
            image,
            margin,
            ..self
        }
    }

    /// Tiles of an image.
    fn count(self) -> usize {
        self.tiles[0] * self.tiles[1]
    }

    /// Where the pixels of a tile lie, the first image's first; [`OUTSIDE`] of their image.
    #[inline(always)]
    fn places<const N: usize>(self, tile: usize) -> [[usize; N]; N] {
        let (image, tile) = (tile / self.count(), tile % self.count());
        let (top, left) = (4 * (tile / self.tiles[1]), 4 * (tile % self.tiles[1]));
        let Dims {
            height,
            width,
            channels,
        } = self.image;
        let mut places = [[OUTSIDE; N]; N];
        for (i, places) in places.iter_mut().enumerate() {
            // Before the first row is after the last, too.
            let row = (top + i).wrapping_sub(self.margin[0]);
            for (j, place) in places.iter_mut().enumerate() {
                let column = (left + j).wrapping_sub(self.margin[1]);
                if row < height && column < width {
                    *place = ((image * height + row) * width + column) * channels;
                }
            }
        }
        places
    }

    /// Channels of a tile's pixels from `channel` on, zeros outside.
    #[inline(always)]
    fn read<V: Vector, const N: usize>(
        from: &[f32],
        places: &[[usize; N]; N],
        channel: usize,
    ) -> [[V; N]; N] {
        let mut tile = [[V::zero(); N]; N];
        for i in 0..N {
            for j in 0..N {
                if places[i][j] != OUTSIDE {
                    tile[i][j] = V::read(&from[places[i][j] + channel..]);
                }
            }
        }
        tile
    }
}

/// Convolves images, whose tiles lie as in `from`, into the tiles of `to`.
fn convolve(
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
    dispatch(Weights {
        from: weight,
        size: inputs * outputs,
        to: u,
    });
    for first in (0..count).step_by(tiles) {
        let range = first..(first + tiles).min(count);
        dispatch(Pixels {
            from: x,
            tiling: from,
            range: range.clone(),
            plane: plane(tiles, inputs),
            to: v,
        });
        for (i, u) in u.chunks_exact(inputs * outputs).enumerate() {
            let v = Left::rows(&v[i * plane(tiles, inputs)..], inputs);
            let m = &mut m[i * plane(tiles, outputs)..];
            let shape = (range.len(), outputs, inputs);
            gemm(shape, v, u, outputs, m, outputs, Into::Replace);
        }
        dispatch(Outputs {
            from: m,
            plane: plane(tiles, outputs),
            tiling: to,
            range,
            bias,
            to: y,
        });
    }
}

/// Transforms weights.
struct Weights<'a> {
    from: &'a [f32],
    /// Numbers of each plane.
    size: usize,
    to: &'a mut [f32],
}

impl Kernel for Weights<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        for at in (0..self.size).step_by(V::LANES) {
            let w = gather::<V, 3>(&self.from[at..], self.size);
            spread(
                square::<V, OfWeights, 3, 6>(w),
                &mut self.to[at..],
                self.size,
            );
        }
    }
}

/// Transforms the planes of a weight gradient where they lie; the first nine hold it then.
struct WeightGradients<'a> {
    planes: &'a mut [f32],
    size: usize,
}

impl Kernel for WeightGradients<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        for at in (0..self.size).step_by(V::LANES) {
            let u = gather::<V, 6>(&self.planes[at..], self.size);
            let w = square::<V, OfWeightGradients, 6, 3>(u);
            spread(w, &mut self.planes[at..], self.size);
        }
    }
}

/// Transforms the pixels under a range of tiles.
struct Pixels<'a> {
    from: &'a [f32],
    tiling: Tiling,
    range: Range<usize>,
    plane: usize,
    to: &'a mut [f32],
}

impl Kernel for Pixels<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        let channels = self.tiling.image.channels;
        for (tile, number) in self.range.enumerate() {
            let places = self.tiling.places::<6>(number);
            for channel in (0..channels).step_by(V::LANES) {
                let x = Tiling::read::<V, 6>(self.from, &places, channel);
                let to = &mut self.to[tile * channels + channel..];
                spread(square::<V, OfPixels, 6, 6>(x), to, self.plane);
            }
        }
    }
}

/// Transforms the output's gradient at a range of tiles.
struct OutputGradients<'a> {
    from: &'a [f32],
    tiling: Tiling,
    range: Range<usize>,
    plane: usize,
    to: &'a mut [f32],
}

impl Kernel for OutputGradients<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        let channels = self.tiling.image.channels;
        for (tile, number) in self.range.enumerate() {
            let places = self.tiling.places::<4>(number);
            for channel in (0..channels).step_by(V::LANES) {
                let y = Tiling::read::<V, 4>(self.from, &places, channel);
                let to = &mut self.to[tile * channels + channel..];
                spread(square::<V, OfOutputGradients, 4, 6>(y), to, self.plane);
            }
        }
    }
}

/// Transforms products to pixels of the output.
struct Outputs<'a> {
    from: &'a [f32],
    plane: usize,
    tiling: Tiling,
    range: Range<usize>,
    bias: Option<&'a [f32]>,
    to: &'a mut [f32],
}

impl Kernel for Outputs<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        let channels = self.tiling.image.channels;
        for (tile, number) in self.range.enumerate() {
            let places = self.tiling.places::<4>(number);
            for channel in (0..channels).step_by(V::LANES) {
                let from = &self.from[tile * channels + channel..];
                let y = square::<V, OfOutputs, 6, 4>(gather(from, self.plane));
                let bias = match self.bias {
                    Some(bias) => V::read(&bias[channel..]),
                    None => V::zero(),
                };
                for i in 0..4 {
                    for j in 0..4 {
                        if places[i][j] != OUTSIDE {
                            let to = &mut self.to[places[i][j] + channel..];
                            y[i][j].add(bias).write(to);
                        }
                    }
                }
            }
        }
    }
}
