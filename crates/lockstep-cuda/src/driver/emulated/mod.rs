//! A GPU that is emulated on the processor: the same kernels, compiled as C++. For tests, on machines without a GPU.
//!
//! Its memory is the machine's, what is queued is done at once, and a graph is a list that is run again. What a GPU may do
//! in any order is done in one order here, so waiting that was forgotten may go unnoticed; everything else is as there,
//! the bits too. Memory that was not written to holds NaN, so that it shows.

mod compile;
mod device;

use super::{Device, DeviceFacts, Driver, DriverVersion};
use crate::error::CudaError;
use crate::kernels::BATCH;
use device::EmulatedDevice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of the emulated GPU's memory: so that asking for too much can be tried.
const MEMORY: usize = 4 << 30;

/// Emulated GPUs, one unless more are wanted, which keep what they compile in a folder.
#[derive(Debug, Clone)]
pub struct EmulatedDriver {
    folder: PathBuf,
    fault: Fault,
    count: usize,
}

/// What is wrong with an emulated GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Nothing.
    Nothing,
    /// It is lost when a graph is queued for the so many-th time.
    LostAt(usize),
    /// What is read of its memory has a bit that is another one.
    FlippedBit,
}

impl EmulatedDriver {
    /// Keeps compiled kernels in this folder.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            fault: Fault::Nothing,
            count: 1,
        }
    }

    /// The same with so many GPUs, none of which can read another one's memory.
    pub fn with_gpus(self, count: usize) -> Self {
        Self { count, ..self }
    }

    /// The same with a GPU that is lost when a graph, which is a step, is queued for the `number`-th time, and from then on
    /// refuses everything.
    pub fn losing_the_gpu_at(self, number: usize) -> Self {
        Self {
            fault: Fault::LostAt(number),
            ..self
        }
    }

    /// The same with a GPU of whose memory a bit is read as another one.
    pub fn with_a_flipped_bit(self) -> Self {
        Self {
            fault: Fault::FlippedBit,
            ..self
        }
    }

    /// The same for tests, with a folder of its own in this cache. Without a compiler it says that the test is skipped.
    ///
    /// # Panics
    /// When there is a compiler, and it cannot make the kernels.
    pub fn if_it_works(cache: &Path) -> Option<Self> {
        let driver = Self::new(&cache.join("cuda-emulated"));
        let device = driver.open(0);
        let tried = device.and_then(|device| device.function(&BATCH, "end_step", 0));
        match tried {
            Err(CudaError::NoCompiler) => {
                println!("skipped: {}", CudaError::NoCompiler);
                None
            }
            tried => {
                tried.expect("an emulated GPU that works");
                Some(driver)
            }
        }
    }
}

impl Driver for EmulatedDriver {
    fn devices(&self) -> Result<Vec<DeviceFacts>, CudaError> {
        let facts = |index| DeviceFacts {
            index,
            name: "an emulated GPU".to_owned(),
            memory: MEMORY as u64,
            capability: [8, 0],
            uuid: format!("GPU-00000000-0000-0000-0000-{index:012}"),
            driver: DriverVersion {
                major: 12,
                minor: 0,
            },
        };
        Ok((0..self.count).map(facts).collect())
    }

    fn open(&self, index: usize) -> Result<Arc<dyn Device>, CudaError> {
        let mut devices = self.devices()?;
        if index >= devices.len() {
            let count = devices.len();
            return Err(CudaError::NoSuchDevice { index, count });
        }
        let facts = devices.swap_remove(index);
        Ok(Arc::new(EmulatedDevice::new(
            facts,
            &self.folder,
            self.fault,
        )))
    }
}
