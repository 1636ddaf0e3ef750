//! Which device a network is computed on: decided once for a gang, and found by each worker.
//!
//! The weights do not depend on it, but the exchange does: a GPU hands out gradients and nothing else, so a gang in which
//! there may be one exchanges all layers as gradients. That is decided by the coordinator and told to all.

use crate::TrainError;
use crate::cuda::CudaDevice;
use crate::device::Device;
use crate::host::HostDevice;
use crate::prepare::{evaluation_rows, model_on, threads_here, working_model};
use crate::sets::DataFacts;
use lockstep_cuda::{CudaError, Gpu};
use lockstep_nn::{Capacity, Threads};
use lockstep_resolve::{DeviceChoice, TrainingSettings};

/// What was decided for a gang, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeviceDecision {
    /// What it computes on.
    pub(crate) words: String,
    /// What a person may not expect: why no GPU is used although one was asked for, or is there.
    pub(crate) note: Option<String>,
}

/// Decides for the gang of a job: `asks_gpus` says whether a cluster keeps GPUs for its workers.
pub(crate) fn decide(settings: &mut TrainingSettings, asks_gpus: bool) -> DeviceDecision {
    let here = match settings.device {
        DeviceChoice::Cpu => Err(None),
        DeviceChoice::Auto | DeviceChoice::Cuda(_) => first_gpu().map_err(Some),
    };
    let (words, note) = match (settings.device, here) {
        (DeviceChoice::Cpu, _) => ("the processor".to_owned(), None),
        (DeviceChoice::Cuda(_), Err(_)) => ("GPUs of the workers".to_owned(), None),
        (DeviceChoice::Auto, _) if asks_gpus => ("GPUs that the cluster keeps".to_owned(), None),
        (_, Ok(name)) => (name, None),
        (DeviceChoice::Auto, Err(why)) => {
            settings.device = DeviceChoice::Cpu;
            (
                "the processor".to_owned(),
                why.as_ref().and_then(unexpected),
            )
        }
    };
    settings.gradients_only = settings.device != DeviceChoice::Cpu;
    DeviceDecision { words, note }
}

/// The name of the first GPU of this machine.
fn first_gpu() -> Result<String, CudaError> {
    let facts = Gpu::find()?;
    let first = facts.first().ok_or(CudaError::NoDevice)?;
    Ok(first.name.clone())
}

/// What to say of a GPU that cannot be used; nothing where there is none.
fn unexpected(error: &CudaError) -> Option<String> {
    match error {
        CudaError::Static | CudaError::NoDriver { .. } | CudaError::NoDevice => None,
        error => Some(format!("training on the processor, since {error}")),
    }
}

/// Opens the device of the worker of this rank, with the job's network on it, and says how many rows it evaluates at a
/// time.
pub(crate) fn open(
    settings: &TrainingSettings,
    data: &DataFacts,
    rank: usize,
) -> Result<(Box<dyn Device>, usize), TrainError> {
    let gpu = match settings.device {
        DeviceChoice::Cpu => None,
        DeviceChoice::Auto => gpu(None, rank).ok(),
        DeviceChoice::Cuda(number) => Some(gpu(number, rank)?),
    };
    match gpu {
        Some(gpu) => {
            let one = Capacity { rows: 1, lanes: 1 };
            let model = model_on(&Threads::default(), settings, data, one)?;
            let rows = evaluation_rows(settings, data, &model);
            Ok((Box::new(CudaDevice::new(gpu, model, rows)), rows))
        }
        None => {
            let threads = threads_here(settings, data)?;
            let (model, rows) = working_model(settings, data, &threads)?;
            Ok((Box::new(HostDevice::new(model)), rows))
        }
    }
}

/// The GPU of this number, or for each rank the next one.
fn gpu(number: Option<u32>, rank: usize) -> Result<Gpu, CudaError> {
    let index = match number {
        Some(number) => number as usize,
        None => rank % Gpu::find()?.len().max(1),
    };
    Gpu::open(index)
}
