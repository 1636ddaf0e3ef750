//! Which device something is computed on: asked for once, looked for where a job is planned, and found by each worker.

use crate::error::CudaError;
use crate::gpu::Gpu;
use serde::{Deserialize, Serialize};

/// What is computed on, as it was asked for. Every device gives the same bits.
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

/// What was decided for all workers, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceDecision {
    /// What the workers are told.
    pub choice: DeviceChoice,
    /// What they compute on, if that is no processor.
    pub gpu: Option<String>,
    /// GPUs of this machine that the workers share; 0 where they have others, or none.
    pub shared: usize,
    /// What a person may not expect: why no GPU is used although one is there.
    pub note: Option<String>,
}

impl DeviceDecision {
    /// What is computed on.
    pub fn words(&self) -> &str {
        self.gpu.as_deref().unwrap_or("the processor")
    }
}

/// What a worker computes on.
pub struct OpenedDevice {
    /// Its GPU; none if it computes on the processor.
    pub gpu: Option<Gpu>,
    /// Why there is none, if one was looked for.
    pub note: Option<String>,
}

impl OpenedDevice {
    fn on(gpu: Gpu) -> Self {
        Self {
            gpu: Some(gpu),
            note: None,
        }
    }
}

impl DeviceChoice {
    /// Decides for all workers of a job: `asks_gpus` says whether a cluster keeps GPUs for them. What is only found on
    /// another machine is left to the workers.
    pub fn decide(self, asks_gpus: bool) -> DeviceDecision {
        let here = match self {
            Self::Cpu => Err(None),
            Self::Auto | Self::Cuda(None) => look(0).map_err(Some),
            Self::Cuda(Some(number)) => look(number as usize).map_err(Some),
        };
        let words = |words: &str| Some(words.to_owned());
        let mut shared = 0;
        let (choice, gpu, why) = match (self, here) {
            (Self::Cpu, _) => (self, None, None),
            (_, Ok((name, gpus))) => {
                shared = match self {
                    _ if asks_gpus => 0,
                    Self::Cuda(Some(_)) => 1,
                    _ => gpus,
                };
                (self, Some(name), None)
            }
            (Self::Cuda(_), Err(_)) => (self, words("GPUs of the workers"), None),
            (Self::Auto, Err(_)) if asks_gpus => (self, words("GPUs that the cluster keeps"), None),
            (Self::Auto, Err(why)) => (Self::Cpu, None, why),
        };
        DeviceDecision {
            choice,
            gpu,
            shared,
            note: why.as_ref().and_then(unexpected),
        }
    }

    /// Opens the device of a worker, which is the `worker`-th of its machine.
    ///
    /// # Errors
    /// When a GPU was asked for, and there is none or it cannot be used.
    pub fn open(self, worker: usize) -> Result<OpenedDevice, CudaError> {
        let processor = |note| OpenedDevice { gpu: None, note };
        match self {
            Self::Cpu => Ok(processor(None)),
            Self::Auto => Ok(match next(worker) {
                Ok(gpu) => OpenedDevice::on(gpu),
                Err(error) => processor(Some(on_the_processor(&error))),
            }),
            Self::Cuda(None) => next(worker).map(OpenedDevice::on),
            Self::Cuda(Some(number)) => Gpu::open(number as usize).map(OpenedDevice::on),
        }
    }
}

/// For each worker the next GPU.
fn next(worker: usize) -> Result<Gpu, CudaError> {
    Gpu::open(worker % Gpu::find()?.len().max(1))
}

/// The name of a GPU of this machine, and how many there are.
fn look(number: usize) -> Result<(String, usize), CudaError> {
    let facts = Gpu::find()?;
    let found = facts.get(number).ok_or(CudaError::NoDevice)?;
    Ok((found.name.clone(), facts.len()))
}

/// What to say of a GPU that cannot be used; nothing where there is none.
fn unexpected(error: &CudaError) -> Option<String> {
    match error {
        CudaError::Static | CudaError::NoDriver { .. } | CudaError::NoDevice => None,
        error => Some(on_the_processor(error)),
    }
}

fn on_the_processor(error: &CudaError) -> String {
    format!("computing on the processor, since {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::DriverVersion;

    #[test]
    fn the_processor_needs_no_gpu() {
        let decision = DeviceChoice::Cpu.decide(true);
        assert_eq!(decision.words(), "the processor");
        assert_eq!(decision.note, None);
        let opened = DeviceChoice::Cpu.open(3).unwrap();
        assert!(opened.gpu.is_none() && opened.note.is_none());
    }

    #[test]
    fn a_gpu_that_cannot_be_used_is_told_and_one_that_is_not_there_is_not() {
        assert_eq!(unexpected(&CudaError::NoDevice), None);
        let version = |major, minor| DriverVersion { major, minor };
        let told = unexpected(&CudaError::TooOldDriver {
            found: version(11, 4),
            oldest: version(12, 0),
        });
        let told = told.unwrap();
        assert!(
            told.starts_with(
                "computing on the processor, since the NVIDIA driver supports CUDA 11.4"
            ),
            "{told}"
        );
    }
}
