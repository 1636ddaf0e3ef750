//! Tiles of images, and the kernels that transform them for Winograd's convolution.
//!
//! A kernel reads a range of tiles and writes them to planes, one for each place in a tile, or reads
//! planes and writes tiles. Vectors run across the channels, of which there are whole vectors. Several threads may
//! work on the same planes, each on tiles of its own.

use super::transform::{
    OfOutputs, OfWeightGradients, OfWeights, TransformMatrix, gather, spread, square,
};
use crate::dims::Dims;
use crate::gemm::{Kernel, Vector, dispatch};
use crate::threads::SharedMut;
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

/// Transforms weights: as many as `from` has of each of nine places, which are `plane` apart there.
///
/// # Safety
/// Nobody else uses the same numbers of the planes in `to` meanwhile, which begin with number `at` of each and are
/// `size` apart.
pub(super) unsafe fn transform_weights(
    (from, plane): (&[f32], usize),
    count: usize,
    (to, at, size): (&SharedMut<'_, f32>, usize, usize),
) {
    dispatch(WeightTransform {
        from,
        plane,
        count,
        to,
        at,
        size,
    });
}

struct WeightTransform<'a> {
    from: &'a [f32],
    plane: usize,
    count: usize,
    to: &'a SharedMut<'a, f32>,
    at: usize,
    size: usize,
}

impl Kernel for WeightTransform<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        for at in (0..self.count).step_by(V::LANES) {
            let w = gather::<V, 3>(&self.from[at..], self.plane);
            let w = square::<V, OfWeights, 3, 6>(w);
            // SAFETY: by the contract of the function above.
            unsafe { spread(w, self.to, self.at + at, self.size) };
        }
    }
}

/// Transforms the planes of a weight gradient to its nine places.
///
/// # Safety
/// Nobody else uses the same numbers of the places in `to` meanwhile, which begin with number `at` of each and are `size`
/// apart. The planes in `from` are `plane` apart.
pub(super) unsafe fn transform_weight_gradients(
    (from, plane): (&[f32], usize),
    count: usize,
    (to, at, size): (&SharedMut<'_, f32>, usize, usize),
) {
    dispatch(WeightGradients {
        from,
        plane,
        count,
        to,
        at,
        size,
    });
}

struct WeightGradients<'a> {
    from: &'a [f32],
    plane: usize,
    count: usize,
    to: &'a SharedMut<'a, f32>,
    at: usize,
    size: usize,
}

impl Kernel for WeightGradients<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        for at in (0..self.count).step_by(V::LANES) {
            let u = gather::<V, 6>(&self.from[at..], self.plane);
            let w = square::<V, OfWeightGradients, 6, 3>(u);
            // SAFETY: by the contract of the function above.
            unsafe { spread(w, self.to, self.at + at, self.size) };
        }
    }
}

/// Where transformed tiles lie: planes that are `plane` apart, each with the channels of tile after tile from `first` on.
#[derive(Clone, Copy)]
pub(super) struct Planes {
    pub(super) first: usize,
    pub(super) plane: usize,
}

/// Transforms the `N x N` numbers under each of a range of tiles by `T`.
///
/// # Safety
/// Nobody else uses these tiles of the planes meanwhile.
pub(super) unsafe fn transform_tiles<T: TransformMatrix<N, 6>, const N: usize>(
    (from, tiling): (&[f32], Tiling),
    range: Range<usize>,
    (to, planes): (&SharedMut<'_, f32>, Planes),
) {
    dispatch(TileTransform {
        from,
        tiling,
        range,
        to,
        planes,
        by: PhantomData::<T>,
    });
}

struct TileTransform<'a, T, const N: usize> {
    from: &'a [f32],
    tiling: Tiling,
    range: Range<usize>,
    to: &'a SharedMut<'a, f32>,
    planes: Planes,
    by: PhantomData<T>,
}

impl<T: TransformMatrix<N, 6>, const N: usize> Kernel for TileTransform<'_, T, N> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        let channels = self.tiling.image.channels;
        for number in self.range {
            let places = self.tiling.places::<N>(number);
            let tile = (number - self.planes.first) * channels;
            for channel in (0..channels).step_by(V::LANES) {
                let x = Tiling::read::<V, N>(self.from, &places, channel);
                let x = square::<V, T, N, 6>(x);
                // SAFETY: by the contract of the function above.
                unsafe { spread(x, self.to, tile + channel, self.planes.plane) };
            }
        }
    }
}

/// Transforms products to pixels of the output, for a range of tiles.
///
/// # Safety
/// Nobody else uses the pixels of these tiles meanwhile.
pub(super) unsafe fn transform_outputs(
    (from, planes): (&[f32], Planes),
    range: Range<usize>,
    bias: Option<&[f32]>,
    (to, tiling): (&SharedMut<'_, f32>, Tiling),
) {
    dispatch(OutputTransform {
        from,
        planes,
        range,
        bias,
        to,
        tiling,
    });
}

struct OutputTransform<'a> {
    from: &'a [f32],
    planes: Planes,
    range: Range<usize>,
    bias: Option<&'a [f32]>,
    to: &'a SharedMut<'a, f32>,
    tiling: Tiling,
}

impl Kernel for OutputTransform<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        let channels = self.tiling.image.channels;
        for number in self.range {
            let places = self.tiling.places::<4>(number);
            let tile = (number - self.planes.first) * channels;
            for channel in (0..channels).step_by(V::LANES) {
                let from = &self.from[tile + channel..];
                let y = square::<V, OfOutputs, 6, 4>(gather(from, self.planes.plane));
                let bias = match self.bias {
                    Some(bias) => V::read(&bias[channel..]),
                    None => V::zero(),
                };
                for i in 0..4 {
                    for j in 0..4 {
                        if places[i][j] != OUTSIDE {
                            let at = places[i][j] + channel;
                            // SAFETY: by the contract of the function above, and a pixel belongs to one tile.
                            let to = unsafe { self.to.part(at..at + V::LANES) };
                            y[i][j].add(bias).write(to);
                        }
                    }
                }
            }
        }
    }
}
