//! A GPU that is emulated on the processor: the same kernels, compiled as C++. For tests, on machines without a GPU.
//!
//! Its memory is the machine's, what is queued is done at once, and a graph is a list that is run again. What a GPU may do
//! in any order is done in one order here, so waiting that was forgotten may go unnoticed; everything else is as there,
//! the bits too. Memory that was not written to holds NaN, so that it shows.

mod compile;
mod device;

use super::{Device, DeviceFacts, Driver, DriverVersion};
use crate::error::CudaError;
use device::EmulatedDevice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of the emulated GPU's memory: so that asking for too much can be tried.
const MEMORY: usize = 4 << 30;

/// One emulated GPU, which keeps what it compiles in a folder.
#[derive(Debug, Clone)]
pub struct EmulatedDriver {
    folder: PathBuf,
}

impl EmulatedDriver {
    /// Keeps compiled kernels in this folder.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }
}

impl Driver for EmulatedDriver {
    fn devices(&self) -> Result<Vec<DeviceFacts>, CudaError> {
        Ok(vec![DeviceFacts {
            index: 0,
            name: "an emulated GPU".to_owned(),
            memory: MEMORY as u64,
            capability: [8, 0],
            uuid: "GPU-00000000-0000-0000-0000-000000000000".to_owned(),
            driver: DriverVersion {
                major: 12,
                minor: 0,
            },
        }])
    }

    fn open(&self, index: usize) -> Result<Arc<dyn Device>, CudaError> {
        let mut devices = self.devices()?;
        if index >= devices.len() {
            let count = devices.len();
            return Err(CudaError::NoSuchDevice { index, count });
        }
        let facts = devices.swap_remove(index);
        Ok(Arc::new(EmulatedDevice::new(facts, &self.folder)))
    }
}
