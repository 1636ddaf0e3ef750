//! The tasks of Winograd's three kernels, as `winograd.cu` has them.

use super::super::super::divisor::Divisor;
use super::super::super::pass::Pass;
use super::super::super::pointwise::Pointwise;
use super::super::bias::{BiasSums, ImageSums};
use crate::arguments::{Pointer, arguments};
use crate::kernels::{Kernel, WINOGRAD};
use crate::launch::Launch;

arguments! {
    /// How tiles lie on images.
    pub(super) struct Tiling {
        height: u32,
        width: u32,
        channels: Divisor,
        top: u32,
        left: u32,
        tiles: Divisor,
        across: Divisor,
        count: u32,
    }

    /// Weights to planes.
    pub(super) struct WeightTask {
        from: Pointer<f32>,
        to: Pointer<f32>,
        inputs: u32,
        outputs: u32,
        groups: Divisor,
        is_turned: u32,
        blocks: u32,
    }

    /// Pixels to planes.
    pub(super) struct TileTask {
        from: Pointer<f32>,
        to: Pointer<f32>,
        tiling: Tiling,
        blocks: u32,
    }

    pub(super) struct WinogradBegin {
        weights: WeightTask,
        sums: ImageSums,
        pixels: TileTask,
        inputs: TileTask,
        gradients: TileTask,
    }

    /// Products of pixels and weights.
    pub(super) struct PixelProducts {
        pixels: Pointer<f32>,
        weights: Pointer<f32>,
        to: Pointer<f32>,
        tiles: u32,
        inputs: u32,
        outputs: u32,
        across: Divisor,
        down: Divisor,
        blocks: u32,
    }

    /// Products of inputs and gradients.
    pub(super) struct WeightProducts {
        inputs_from: Pointer<f32>,
        gradients: Pointer<f32>,
        to: Pointer<f32>,
        lane_rows: Pointer<u32>,
        tiles: u32,
        count: u32,
        inputs: u32,
        outputs: u32,
        side: u32,
        across: Divisor,
        down: Divisor,
        blocks: u32,
    }

    pub(super) struct WinogradProducts {
        weights: WeightProducts,
        pixels: PixelProducts,
    }

    /// Planes to pixels.
    pub(super) struct OutputTask {
        from: Pointer<f32>,
        bias: Pointer<f32>,
        to: Pointer<f32>,
        tiling: Tiling,
        pointwise: Pointwise,
        x: Pointer<f32>,
        is_backward: u32,
        blocks: u32,
    }

    /// Planes to the gradient of weights.
    pub(super) struct WeightGradientTask {
        from: Pointer<f32>,
        to: Pointer<f32>,
        stride: u64,
        size: Divisor,
        lanes: u32,
        blocks: u32,
    }

    pub(super) struct WinogradEnd {
        outputs: OutputTask,
        weights: WeightGradientTask,
        bias: BiasSums,
    }
}

/// Threads of a block that transforms.
pub(super) const THREADS: usize = 128;

const BEGIN: Kernel<WinogradBegin> = Kernel::new(&WINOGRAD, "winograd_begin", THREADS as u32);
const PRODUCTS: Kernel<WinogradProducts> = Kernel::new(&WINOGRAD, "winograd_products", 64);
const END: Kernel<WinogradEnd> = Kernel::new(&WINOGRAD, "winograd_end", THREADS as u32);

/// Places of a tile.
pub(super) const PLANES: usize = 36;

/// Appends the three kernels, each with as many blocks as its tasks have.
pub(super) fn launch(
    pass: &mut Pass<'_>,
    begin: WinogradBegin,
    products: WinogradProducts,
    end: WinogradEnd,
) {
    let tiles = [begin.pixels, begin.inputs, begin.gradients];
    let tiles = tiles.iter().map(|task| task.blocks).sum::<u32>();
    let blocks = begin.sums.blocks + begin.weights.blocks + tiles;
    pass.push(Launch::new(&BEGIN, [blocks as usize, 1, 1], begin));
    let blocks = products.weights.blocks + products.pixels.blocks;
    pass.push(Launch::new(&PRODUCTS, [blocks as usize, 1, 1], products));
    let blocks = end.bias.blocks + end.weights.blocks + end.outputs.blocks;
    pass.push(Launch::new(&END, [blocks as usize, 1, 1], end));
}
