//! How images are cut into tiles.

use super::super::super::divisor::Divisor;
use super::tasks::{PLANES, THREADS, TileTask, Tiling};
use crate::memory::DeviceSlice;
use lockstep_nn::Dims;

/// Images that are cut into tiles of 4 x 4 pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tiles {
    pub(super) image: Dims,
    margin: [usize; 2],
    /// From top to bottom and from left to right.
    tiles: [usize; 2],
}

impl Tiles {
    /// The tiles that cover an image.
    pub(super) fn of(image: Dims) -> Self {
        Self {
            image,
            margin: [0, 0],
            tiles: [image.height.div_ceil(4), image.width.div_ceil(4)],
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

    /// Numbers of all planes of so many images.
    pub(super) fn numbers(self, images: usize) -> usize {
        PLANES * images * self.count() * self.image.channels
    }

    pub(super) fn tiling(self, images: usize) -> Tiling {
        let [top, left] = self.margin.map(|margin| margin as u32);
        Tiling {
            height: self.image.height as u32,
            width: self.image.width as u32,
            channels: Divisor::new(self.image.channels),
            top,
            left,
            tiles: Divisor::new(self.count()),
            across: Divisor::new(self.tiles[1]),
            count: (images * self.count()) as u32,
        }
    }

    /// Blocks that have a channel of a tile a thread.
    pub(super) fn blocks(self, images: usize) -> u32 {
        (images * self.count() * self.image.channels).div_ceil(THREADS) as u32
    }

    /// Transforms what lies under the tiles to planes.
    pub(super) fn task(
        self,
        images: usize,
        from: DeviceSlice<f32>,
        to: DeviceSlice<f32>,
    ) -> TileTask {
        TileTask {
            from: from.pointer(),
            to: to.pointer(),
            tiling: self.tiling(images),
            blocks: self.blocks(images),
        }
    }
}
