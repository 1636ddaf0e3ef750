//! Tiles of images, and the kernels that transform them for Winograd's convolution.
//!
//! A kernel reads a range of tiles and writes them to planes, one for each place in a tile, or reads
//! planes and writes tiles. Vectors run across the channels, of which there are whole vectors.

use super::transform::{
    OfOutputs, OfWeightGradients, OfWeights, TransformMatrix, gather, spread, square,
};
use crate::dims::Dims;
use crate::gemm::{Kernel, Vector};
use std::marker::PhantomData;
use std::ops::Range;

/// The place of a pixel that no image has.
const OUTSIDE: usize = usize::MAX;

/// An image and how tiles lie on it: tile `(i, j)` begins at pixel `(4 i - top, 4 j - left)`.
#[derive(Clone, Copy)]
pub(super) struct Tiling {
    pub(super) image: Dims,
    /// Tiles from top to bottom and from left to right.
    tiles: [usize; 2],
    margin: [usize; 2],
}

impl Tiling {
    /// The tiles that cover an image.
    pub(super) fn new(image: Dims) -> Self {
        Self {
            image,
            tiles: [image.height.div_ceil(4), image.width.div_ceil(4)],
            margin: [0, 0],
        }
    }

    /// The same tiles on an image that has a margin.
    pub(super) fn under(self, image: Dims, margin: [usize; 2]) -> Self {
        Self {
            image,
            margin,
            ..self
        }
    }

    /// Tiles of an image.
    pub(super) fn count(self) -> usize {
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

/// Transforms weights.
pub(super) struct WeightTransform<'a> {
    pub(super) from: &'a [f32],
    /// Numbers of each plane.
    pub(super) size: usize,
    pub(super) to: &'a mut [f32],
}

impl Kernel for WeightTransform<'_> {
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
pub(super) struct WeightGradients<'a> {
    pub(super) planes: &'a mut [f32],
    pub(super) size: usize,
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

/// Transforms the `N x N` numbers under each of a range of tiles by `T`.
pub(super) struct TileTransform<'a, T, const N: usize> {
    pub(super) from: &'a [f32],
    pub(super) tiling: Tiling,
    pub(super) range: Range<usize>,
    pub(super) plane: usize,
    pub(super) to: &'a mut [f32],
    pub(super) by: PhantomData<T>,
}

impl<T: TransformMatrix<N, 6>, const N: usize> Kernel for TileTransform<'_, T, N> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        let channels = self.tiling.image.channels;
        for (tile, number) in self.range.enumerate() {
            let places = self.tiling.places::<N>(number);
            for channel in (0..channels).step_by(V::LANES) {
                let x = Tiling::read::<V, N>(self.from, &places, channel);
                let to = &mut self.to[tile * channels + channel..];
                spread(square::<V, T, N, 6>(x), to, self.plane);
            }
        }
    }
}

/// Transforms products to pixels of the output.
pub(super) struct OutputTransform<'a> {
    pub(super) from: &'a [f32],
    pub(super) plane: usize,
    pub(super) tiling: Tiling,
    pub(super) range: Range<usize>,
    pub(super) bias: Option<&'a [f32]>,
    pub(super) to: &'a mut [f32],
}

impl Kernel for OutputTransform<'_> {
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
