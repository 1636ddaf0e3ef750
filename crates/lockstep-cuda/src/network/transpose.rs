//! Images that become vectors in PyTorch's order, and the other way round.

use super::chain::{Backward, Forward, Layer};
use super::pass::Pass;
use super::pointwise::Pointwise;
use crate::arguments::{Pointer, arguments};
use crate::kernels::{Kernel, TRANSPOSE};
use crate::launch::{Launch, MOST_UPRIGHT};
use crate::memory::DeviceSlice;

arguments! {
    struct Transpose {
        from: Pointer<f32>,
        to: Pointer<f32>,
        width: u32,
        height: u32,
        rows: u32,
        then: Pointwise,
        below: Pointwise,
        x: Pointer<f32>,
    }
}

const TRANSPOSE_TILES: Kernel<Transpose> = Kernel::new(&TRANSPOSE, "transpose", 256);

/// Lines and columns of a tile.
const TILE: usize = 32;

/// Every row is a matrix of so many columns and lines, and is transposed.
pub(crate) struct TransposeLayer {
    pub(crate) width: usize,
    pub(crate) height: usize,
}

fn transpose(
    pass: &mut Pass<'_>,
    [from, to, x]: [DeviceSlice<f32>; 3],
    [width, height]: [usize; 2],
    [then, below]: [Pointwise; 2],
) {
    let arguments = Transpose {
        from: from.pointer(),
        to: to.pointer(),
        width: width as u32,
        height: height as u32,
        rows: pass.rows as u32,
        then,
        below,
        x: x.pointer(),
    };
    let tiles = [width, height].map(|length| length.div_ceil(TILE));
    let blocks = [tiles[0], tiles[1], pass.rows.min(MOST_UPRIGHT)];
    pass.push(Launch::new(&TRANSPOSE_TILES, blocks, arguments));
}

impl Layer for TransposeLayer {
    fn is_pointwise_done(&self) -> bool {
        true
    }

    fn forward(&self, pass: &mut Pass<'_>, Forward { x, y, then }: Forward) {
        let nothing = pass.pointwise(&[], 0);
        let size = [self.width, self.height];
        transpose(pass, [x, y, x], size, [then, nothing]);
    }

    fn backward(&self, pass: &mut Pass<'_>, Backward { x, dy, dx, below }: Backward) {
        if let Some(dx) = dx {
            let nothing = pass.pointwise(&[], 0);
            let size = [self.height, self.width];
            transpose(pass, [dy, dx, x], size, [nothing, below]);
        }
    }
}
