//! Kernels of matrix products, of which there are two: in small tiles and in large ones. The bits are the same.

use crate::arguments::Arguments;
use crate::kernels::{Kernel, KernelFile};
use crate::launch::Launch;

/// Threads of a block, of either kind.
const THREADS: u32 = 256;

/// Rows and columns of a tile, as `product.cuh` has them.
const SMALL: [usize; 2] = [8, 32];
const LARGE: [usize; 2] = [64, 64];

/// Large tiles, if there are so many of them: fewer would leave most of a GPU without work.
const ENOUGH_TILES: usize = 64;

/// The two kernels of a product.
pub(crate) struct ProductKernels<A> {
    small: Kernel<A>,
    large: Kernel<A>,
}

impl<A: Arguments + 'static> ProductKernels<A> {
    pub(crate) const fn new(
        file: &'static KernelFile,
        small: &'static str,
        large: &'static str,
    ) -> Self {
        Self {
            small: Kernel::new(file, small, THREADS),
            large: Kernel::new(file, large, THREADS),
        }
    }

    /// A product of so many rows and columns, so many times.
    pub(crate) fn launch(&self, [rows, columns]: [usize; 2], times: usize, arguments: A) -> Launch {
        let blocks =
            |[height, width]: [usize; 2]| [columns.div_ceil(width), rows.div_ceil(height), times];
        let large = blocks(LARGE);
        match large.iter().product::<usize>() >= ENOUGH_TILES {
            true => Launch::new(&self.large, large, arguments),
            false => Launch::new(&self.small, blocks(SMALL), arguments),
        }
    }
}
