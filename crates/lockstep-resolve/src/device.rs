//! What something is computed on.

use lockstep_cuda::DeviceChoice;
use lockstep_job::JobDevice;

/// What a job's `device` asks for.
pub fn device(device: JobDevice) -> DeviceChoice {
    match device {
        JobDevice::Auto => DeviceChoice::Auto,
        JobDevice::Cpu => DeviceChoice::Cpu,
        JobDevice::Cuda(number) => DeviceChoice::Cuda(number),
    }
}
