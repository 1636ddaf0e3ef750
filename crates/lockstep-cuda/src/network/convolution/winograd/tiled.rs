//! A convolution of images by weights, tile by tile: the way there, and the gradient by the input, whose weights are turned
//! about.

use super::super::super::divisor::Divisor;
use super::super::super::planner::Planner;
use super::super::super::pointwise::Pointwise;
use super::tasks::{OutputTask, PLANES, PixelProducts, THREADS, WeightTask};
use super::tiles::Tiles;
use crate::arguments::Pointer;
use crate::memory::DeviceSlice;

/// What a convolution of images by weights needs while it computes.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProductMemory {
    weights: DeviceSlice<f32>,
    pub(super) pixels: DeviceSlice<f32>,
    products: DeviceSlice<f32>,
}

impl ProductMemory {
    pub(super) fn new(planner: &mut Planner, rows: usize, from: Tiles, to: Tiles) -> Self {
        Self {
            weights: planner.borrow(PLANES * from.image.channels * to.image.channels),
            pixels: planner.borrow(from.numbers(rows)),
            products: planner.borrow(to.numbers(rows)),
        }
    }
}

/// A convolution of images by weights, which may be turned about.
#[derive(Debug, Clone, Copy)]
pub(super) struct TiledConvolution {
    pub(super) from: Tiles,
    pub(super) to: Tiles,
    pub(super) is_turned: bool,
    pub(super) memory: ProductMemory,
}

impl TiledConvolution {
    pub(super) fn weights(&self, from: Pointer<f32>) -> WeightTask {
        let [from_channels, to_channels] = [self.from, self.to].map(|tiles| tiles.image.channels);
        let [inputs, outputs] = match self.is_turned {
            true => [to_channels, from_channels],
            false => [from_channels, to_channels],
        };
        WeightTask {
            from,
            to: self.memory.weights.pointer(),
            inputs: inputs as u32,
            outputs: outputs as u32,
            groups: Divisor::new((inputs / 16).max(1)),
            is_turned: self.is_turned.into(),
            blocks: (inputs * outputs).div_ceil(THREADS) as u32,
        }
    }

    pub(super) fn products(&self, images: usize) -> PixelProducts {
        let [inputs, outputs] = [self.from, self.to].map(|tiles| tiles.image.channels);
        let tiles = images * self.to.count();
        let width = match outputs.is_multiple_of(64) {
            true => 64,
            false => 32,
        };
        let [across, down] = [outputs.div_ceil(width), tiles.div_ceil(64)];
        PixelProducts {
            pixels: self.memory.pixels.pointer(),
            weights: self.memory.weights.pointer(),
            to: self.memory.products.pointer(),
            tiles: tiles as u32,
            inputs: inputs as u32,
            outputs: outputs as u32,
            across: Divisor::new(across),
            down: Divisor::new(down),
            blocks: (PLANES * across * down) as u32,
        }
    }

    pub(super) fn outputs(
        &self,
        images: usize,
        to: DeviceSlice<f32>,
        pointwise: Pointwise,
    ) -> OutputTask {
        OutputTask {
            from: self.memory.products.pointer(),
            bias: Pointer::default(),
            to: to.pointer(),
            tiling: self.to.tiling(images),
            pointwise,
            x: Pointer::default(),
            is_backward: 0,
            blocks: self.to.blocks(images),
        }
    }
}
