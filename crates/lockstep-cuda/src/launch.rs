//! Kernels that a plan wants launched, and the same with their functions loaded.

use crate::arguments::Arguments;
use crate::driver::{Device, Function, Grid};
use crate::error::CudaError;
use crate::kernels::{Kernel, KernelFile};
use std::sync::Arc;

/// A kernel, how many blocks of it, and its arguments.
#[derive(Debug)]
pub(crate) struct Launch {
    file: &'static KernelFile,
    kernel: &'static str,
    grid: Grid,
    arguments: Box<dyn Arguments>,
}

impl Launch {
    /// So many blocks of a kernel.
    pub(crate) fn new<A: Arguments + 'static>(
        kernel: &Kernel<A>,
        blocks: [usize; 3],
        arguments: A,
    ) -> Self {
        let blocks = blocks.map(|blocks| u32::try_from(blocks).unwrap_or(u32::MAX));
        Self {
            file: kernel.file,
            kernel: kernel.name,
            grid: Grid {
                blocks,
                threads: kernel.threads,
                shared: 0,
            },
            arguments: Box::new(arguments),
        }
    }

    /// Blocks of a kernel for so many numbers, of which each thread takes one after the other: as many as keep a large
    /// GPU busy, and no more.
    pub(crate) fn over<A: Arguments + 'static>(
        kernel: &Kernel<A>,
        numbers: usize,
        arguments: A,
    ) -> Self {
        let blocks = numbers.div_ceil(kernel.threads as usize);
        Self::new(kernel, [blocks.clamp(1, MOST_BLOCKS), 1, 1], arguments)
    }

    /// The same so many times: the second direction of the grid has them.
    pub(crate) fn times(mut self, times: usize) -> Self {
        self.grid.blocks[1] = times as u32;
        self
    }

    /// The same with so many bytes that the threads of a block share, beside what the kernel declares.
    pub(crate) fn sharing(mut self, bytes: usize) -> Self {
        self.grid.shared = bytes as u32;
        self
    }

    /// The same with its function, which the device loads.
    pub(crate) fn load(self, device: &dyn Device) -> Result<LoadedLaunch, CudaError> {
        Ok(LoadedLaunch {
            kernel: self.kernel,
            function: device.function(self.file, self.kernel, self.grid.shared)?,
            grid: self.grid,
            arguments: self.arguments.into(),
        })
    }
}

/// Launches with their functions.
pub(crate) fn load_all(
    device: &Arc<dyn Device>,
    launches: Vec<Launch>,
) -> Result<Vec<LoadedLaunch>, CudaError> {
    let loaded = launches.into_iter().map(|launch| launch.load(&**device));
    loaded.collect()
}

/// Blocks that a grid may have in its second and third direction.
pub(crate) const MOST_UPRIGHT: usize = 65_535;

/// Bytes that the threads of a block may share on every GPU.
pub(crate) const MOST_SHARED: usize = 96 * 1024;

/// Blocks of a kernel over many numbers: some for each of the multiprocessors that the largest GPUs have.
const MOST_BLOCKS: usize = 1024;

/// A launch whose function is loaded.
#[derive(Clone)]
pub(crate) struct LoadedLaunch {
    pub(crate) kernel: &'static str,
    pub(crate) function: Function,
    pub(crate) grid: Grid,
    pub(crate) arguments: Arc<dyn Arguments>,
}
