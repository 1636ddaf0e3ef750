//! The norm of the whole gradient, and updates by a gradient that is not longer than it may be.

use super::pass::Pass;
use super::planner::Planner;
use super::update::LaneSums;
use crate::arguments::{Pointer, arguments};
use crate::kernels::{CLIP, Kernel};
use crate::launch::Launch;
use crate::memory::{DeviceSlice, Plain};
use lockstep_nn::Layout;
use lockstep_nn::optimizer::SQUARED_BLOCK;

arguments! {
    struct ClipSquares {
        lanes: LaneSums,
        blocks: Pointer<u64>,
        count: u64,
        squares: Pointer<f64>,
    }

    /// What came out.
    pub(crate) struct Clipped {
        norm: f64,
        scale: f32,
        unused: u32,
    }

    struct ClipNorm {
        squares: Pointer<f64>,
        chunks: Pointer<u64>,
        count: u64,
        sums: Pointer<f64>,
        result: Pointer<Clipped>,
        longest: f64,
    }
}

// SAFETY: numbers, without gaps between them.
unsafe impl Plain for Clipped {}

impl Clipped {
    /// Of no gradient.
    pub(crate) const NONE: Self = Self {
        norm: 0.0,
        scale: 1.0,
        unused: 0,
    };

    /// The norm of the gradient before it was clipped.
    pub(crate) fn norm(&self) -> f64 {
        self.norm
    }
}

const SQUARES: Kernel<ClipSquares> = Kernel::new(&CLIP, "clip_squares", 256);
const NORM: Kernel<ClipNorm> = Kernel::new(&CLIP, "clip_norm", 256);

/// Blocks of numbers that a block of threads has: 8 threads each.
const BLOCKS_OF_BLOCK: usize = 256 / 8;

/// What clipping needs of a device's memory.
pub(crate) struct Clip {
    /// The longest that the gradient may be.
    longest: f64,
    /// Where every block of numbers begins, and its length; and for every chunk of parameters that learn its first block,
    /// and how many it has.
    blocks: DeviceSlice<u64>,
    chunks: DeviceSlice<u64>,
    /// What the blocks and the chunks come to.
    squares: DeviceSlice<f64>,
    sums: DeviceSlice<f64>,
    pub(crate) result: DeviceSlice<Clipped>,
}

impl Clip {
    /// For the parameters of a network, whose gradient may be so long.
    pub(crate) fn new(planner: &mut Planner, layout: &Layout, longest: f64) -> Self {
        let (mut blocks, mut chunks) = (Vec::new(), Vec::new());
        for (number, chunk) in layout.chunks.iter().enumerate() {
            if layout.is_frozen(number) || chunk.start >= layout.parameters {
                continue;
            }
            let count = chunk.len().div_ceil(SQUARED_BLOCK);
            chunks.extend([blocks.len() as u64 / 2, count as u64]);
            for start in chunk.clone().step_by(SQUARED_BLOCK) {
                let length = SQUARED_BLOCK.min(chunk.end - start);
                blocks.extend([start as u64, length as u64]);
            }
        }
        Self {
            longest,
            squares: planner.keep(blocks.len() / 2),
            sums: planner.keep(chunks.len() / 2),
            blocks: planner.constant(blocks),
            chunks: planner.constant(chunks),
            result: planner.keep(1),
        }
    }

    /// What the gradient is to be multiplied by.
    pub(crate) fn scale(&self) -> Pointer<f32> {
        self.result
            .pointer()
            .field(std::mem::offset_of!(Clipped, scale))
    }

    /// Appends what forms the lanes' sums of all parameters that learn, and finds what they are to be multiplied by.
    pub(crate) fn launch(&self, pass: &mut Pass<'_>, lanes: LaneSums) {
        let count = self.squares.len();
        let squares = ClipSquares {
            lanes,
            blocks: self.blocks.pointer(),
            count: count as u64,
            squares: self.squares.pointer(),
        };
        let blocks = [count.div_ceil(BLOCKS_OF_BLOCK).max(1), 1, 1];
        pass.push(Launch::new(&SQUARES, blocks, squares));
        let norm = ClipNorm {
            squares: self.squares.pointer(),
            chunks: self.chunks.pointer(),
            count: self.sums.len() as u64,
            sums: self.sums.pointer(),
            result: self.result.pointer(),
            longest: self.longest,
        };
        pass.push(Launch::new(&NORM, [1, 1, 1], norm));
    }
}
