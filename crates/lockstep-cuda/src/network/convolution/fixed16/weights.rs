//! The gradient by the weights: sums over all pixels of a lane's images, in parts that are added up as integers.

use super::super::super::divisor::Divisor;
use super::super::super::pass::Pass;
use super::super::super::planner::Planner;
use super::super::super::product::MULTIPROCESSORS;
use super::super::Convolution;
use super::super::bias::{BiasSums, ImageSums};
use super::Weights;
use super::slices::{Fixed16Scale, SlicedImages, pieces};
use crate::arguments::{Pointer, arguments};
use crate::kernels::{FIXED16_WEIGHTS, Kernel};
use crate::launch::Launch;
use crate::memory::DeviceSlice;

arguments! {
    struct Fixed16WeightGradient {
        upper: Pointer<u8>,
        lower: Pointer<u8>,
        error_upper: Pointer<u8>,
        error_lower: Pointer<u8>,
        scales: Pointer<Fixed16Scale>,
        error_scales: Pointer<Fixed16Scale>,
        to: Pointer<f32>,
        lane_stride: u64,
        sums: Pointer<u64>,
        lane_rows: Pointer<u32>,
        part: u32,
        height: u32,
        width: u32,
        width_to: Divisor,
        pixels: Divisor,
        kernel: [u32; 2],
        stride: [u32; 2],
        padding: [u32; 2],
        pieces: Divisor,
        error_pieces: u32,
        inputs: u32,
        outputs: u32,
        panel: Divisor,
        across: Divisor,
        tiles: Divisor,
        parts: Divisor,
        blocks: u32,
        bias: ImageSums,
    }

    struct PartSums {
        from: Pointer<u64>,
        to: Pointer<f32>,
        stride: u64,
        lane_rows: Pointer<u32>,
        scales: Pointer<Fixed16Scale>,
        error_scales: Pointer<Fixed16Scale>,
        parts: Divisor,
        size: Divisor,
        lanes: u32,
        blocks: u32,
    }

    struct Fixed16End {
        bias: BiasSums,
        weights: PartSums,
    }
}

const THREADS: usize = 128;
const GRADIENT: Kernel<Fixed16WeightGradient> =
    Kernel::new(&FIXED16_WEIGHTS, "fixed16_weight_gradient", 128);
const GRADIENT_NARROW: Kernel<Fixed16WeightGradient> =
    Kernel::new(&FIXED16_WEIGHTS, "fixed16_weight_gradient_narrow", 128);
const END: Kernel<Fixed16End> = Kernel::new(&FIXED16_WEIGHTS, "fixed16_end", THREADS as u32);

/// Pixels that the sums of a thread can hold, whatever they are; and fewer are not worth a part.
const MOST_PIXELS: usize = 65_536;
const FEW_PIXELS: usize = 256;

/// Pixels that a block has in shared memory at a time: a part is some times as many.
const DEPTH: usize = 64;

/// Rows and columns of a tile, and pieces that it has down and across.
const TILE: [usize; 2] = [128, 64];
const PIECES: [usize; 2] = [TILE[0] / 16, TILE[1] / 16];

/// Bytes that the threads of a block share: both slices of three stages, of which a line is a piece longer than the tile.
const SHARED: usize = 3 * 2 * DEPTH * (TILE[0] + 16 + TILE[1] + 16);

/// Parts that are enough for any layer.
const MOST_PARTS: usize = 2 * MULTIPROCESSORS;

/// Blocks that a large GPU computes at a time. What one of them then takes, in microseconds: for each step of the depth, and beside
/// them; and what it takes to write and read the sum of a part. As measured on an H200 (decision 66).
const BLOCKS: usize = 2 * MULTIPROCESSORS;
const STEP_COST: f64 = 0.95;
const BLOCK_COST: f64 = 6.0;
const SUM_COST: f64 = 16.0 / 3e6;

/// The gradient by the weights of a layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct WeightGradient {
    /// The sums of each part of each lane; nothing if no lane has several.
    sums: DeviceSlice<u64>,
}

impl WeightGradient {
    pub(super) fn new(convolution: &Convolution, weights: &Weights, planner: &mut Planner) -> Self {
        let parts = planner.batches().map(|(lanes, longest)| {
            let parts = parts(weights, lanes, longest * convolution.output.pixels());
            if parts > 1 { lanes * parts } else { 0 }
        });
        let most = parts.into_iter().max().unwrap_or(0);
        Self {
            sums: planner.borrow(most * weights.range.len()),
        }
    }

    /// Appends it, beside the first sums of the gradient by the bias; and then the last ones.
    pub(super) fn push(
        &self,
        pass: &mut Pass<'_>,
        (convolution, weights): (&Convolution, &Weights),
        operands: [&SlicedImages; 2],
        (first, last): (ImageSums, BiasSums),
    ) {
        let is_trained = pass.is_trained(&weights.range);
        let products = is_trained.then(|| self.products(pass, (convolution, weights), operands));
        let arguments = Fixed16WeightGradient {
            bias: first,
            ..products.unwrap_or_default()
        };
        let blocks = arguments.blocks + first.blocks;
        if blocks > 0 {
            let kernel = match weights.is_narrow() {
                true => &GRADIENT_NARROW,
                false => &GRADIENT,
            };
            let launch = Launch::new(kernel, [blocks as usize, 1, 1], arguments);
            pass.push(launch.sharing(SHARED));
        }
        let end = Fixed16End {
            bias: last,
            weights: self.part_sums(pass, &arguments, weights),
        };
        let blocks = end.bias.blocks + end.weights.blocks;
        if blocks > 0 {
            pass.push(Launch::new(&END, [blocks as usize, 1, 1], end));
        }
    }

    /// The gradient, or the sums of its parts.
    fn products(
        &self,
        pass: &Pass<'_>,
        (convolution, weights): (&Convolution, &Weights),
        [images, errors]: [&SlicedImages; 2],
    ) -> Fixed16WeightGradient {
        let Convolution {
            window,
            input,
            output,
            ..
        } = convolution;
        let lanes = pass.lanes.count();
        let pixels = pass.lanes.longest * output.pixels();
        let parts = parts(weights, lanes, pixels);
        let numbers = |numbers: [usize; 2]| numbers.map(|number| number as u32);
        let [upper, lower] = images.slices.pointers();
        let [error_upper, error_lower] = errors.slices.pointers();
        let [down, across] = tiles(weights);
        Fixed16WeightGradient {
            upper,
            lower,
            error_upper,
            error_lower,
            scales: images.scales.pointer(),
            error_scales: errors.scales.pointer(),
            to: pass.gradient(&weights.range),
            lane_stride: pass.stride(),
            sums: match parts {
                1 => Pointer::null(),
                _ => self.sums.pointer(),
            },
            lane_rows: pass.lanes.rows.pointer(),
            part: pixels.div_ceil(parts).next_multiple_of(DEPTH) as u32,
            height: input.height as u32,
            width: input.width as u32,
            width_to: Divisor::new(output.width),
            pixels: Divisor::new(output.pixels()),
            kernel: numbers(window.kernel),
            stride: numbers(window.stride),
            padding: numbers(window.padding),
            pieces: Divisor::new(match weights.is_narrow() {
                true => weights.pieces_of_line(),
                false => pieces(input.channels),
            }),
            error_pieces: pieces(output.channels) as u32,
            inputs: weights.inputs as u32,
            outputs: weights.outputs as u32,
            panel: Divisor::new(weights.panel),
            across: Divisor::new(across),
            tiles: Divisor::new(down * across),
            parts: Divisor::new(parts),
            blocks: (down * across * parts * lanes) as u32,
            bias: ImageSums::default(),
        }
    }

    /// How the parts of these products are added up, if there are several.
    fn part_sums(
        &self,
        pass: &Pass<'_>,
        products: &Fixed16WeightGradient,
        weights: &Weights,
    ) -> PartSums {
        if products.blocks == 0 || products.parts.is_one() {
            return PartSums::default();
        }
        let (lanes, size) = (pass.lanes.count(), weights.range.len());
        PartSums {
            from: self.sums.pointer(),
            to: products.to,
            stride: products.lane_stride,
            lane_rows: products.lane_rows,
            scales: products.scales,
            error_scales: products.error_scales,
            parts: products.parts,
            size: Divisor::new(size),
            lanes: lanes as u32,
            blocks: (lanes * size).div_ceil(THREADS) as u32,
        }
    }
}

/// Tiles of the gradient, down and across.
fn tiles(weights: &Weights) -> [usize; 2] {
    let rows = weights.kernel[0] * weights.pieces_of_line();
    [
        rows.div_ceil(PIECES[0]),
        pieces(weights.outputs).div_ceil(PIECES[1]),
    ]
}

/// Into how many parts the pixels of a lane are cut: so many that a large GPU is best used, as two blocks on each multiprocessor
/// take their parts.
fn parts(weights: &Weights, lanes: usize, pixels: usize) -> usize {
    let [down, across] = tiles(weights);
    let tiles = down * across * lanes;
    let least = pixels.div_ceil(MOST_PIXELS).max(1);
    let most = pixels.div_ceil(FEW_PIXELS).min(MOST_PARTS).max(least);
    let cost = |parts: usize| {
        let turns = (tiles * parts).div_ceil(BLOCKS);
        let of_turn = pixels.div_ceil(parts).div_ceil(DEPTH) as f64 * STEP_COST + BLOCK_COST;
        let sums = if parts > 1 {
            lanes * parts * weights.range.len()
        } else {
            0
        };
        turns as f64 * of_turn + sums as f64 * SUM_COST
    };
    let all = least..=most;
    all.min_by(|&one, &other| cost(one).total_cmp(&cost(other)))
        .unwrap_or(least)
}
