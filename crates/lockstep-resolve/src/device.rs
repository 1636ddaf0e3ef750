//! What a network is computed on.

use lockstep_job::JobDevice;
use serde::{Deserialize, Serialize};

/// What a network is computed on, as it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum DeviceChoice {
    /// A GPU where a worker finds one that it can use, else the processor.
    #[default]
    Auto,
    /// The processor.
    Cpu,
    /// A GPU: that of this number, or for each worker of a machine the next one.
    Cuda(Option<u32>),
}

impl From<JobDevice> for DeviceChoice {
    fn from(device: JobDevice) -> Self {
        match device {
            JobDevice::Auto => Self::Auto,
            JobDevice::Cpu => Self::Cpu,
            JobDevice::Cuda(number) => Self::Cuda(number),
        }
    }
}
