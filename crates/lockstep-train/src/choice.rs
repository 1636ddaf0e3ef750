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
use lockstep_nn::{Capacity, Precision, Threads};
use lockstep_resolve::{DeviceChoice, TrainingSettings};

/// What was decided for a gang, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeviceDecision {
    /// What it computes on, if that is no processor.
    pub(crate) gpu: Option<String>,
    /// What a person may not expect: why no GPU is used although one was asked for, or is there.
    pub(crate) note: Option<String>,
}

impl DeviceDecision {
    /// What it computes on.
    pub(crate) fn words(&self) -> &str {
        self.gpu.as_deref().unwrap_or("the processor")
    }
}

/// Decides for the gang of a job: `asks_gpus` says whether a cluster keeps GPUs for its workers.
pub(crate) fn decide(settings: &mut TrainingSettings, asks_gpus: bool) -> DeviceDecision {
    if settings.learner.precision == Precision::Fixed16 {
        return on_processors(settings, asks_gpus);
    }
    let here = match settings.device {
        DeviceChoice::Cpu => Err(None),
        DeviceChoice::Auto | DeviceChoice::Cuda(None) => gpu_name(0).map_err(Some),
        DeviceChoice::Cuda(Some(number)) => gpu_name(number as usize).map_err(Some),
    };
    let (gpu, why) = match (settings.device, here) {
        (DeviceChoice::Cpu, _) => (None, None),
        (_, Ok(name)) => (Some(name), None),
        (DeviceChoice::Cuda(_), Err(_)) => (Some("GPUs of the workers".to_owned()), None),
        (DeviceChoice::Auto, Err(_)) if asks_gpus => {
            (Some("GPUs that the cluster keeps".to_owned()), None)
        }
        (DeviceChoice::Auto, Err(why)) => {
            settings.device = DeviceChoice::Cpu;
            (None, why)
        }
    };
    settings.gradients_only = gpu.is_some();
    let note = why.as_ref().and_then(unexpected);
    DeviceDecision { gpu, note }
}

/// Decides for a gang that computes in a precision which GPUs do not have: one that was asked for is refused when the
/// job is checked.
fn on_processors(settings: &mut TrainingSettings, asks_gpus: bool) -> DeviceDecision {
    settings.gradients_only = false;
    let mut note = None;
    if settings.device == DeviceChoice::Auto {
        settings.device = DeviceChoice::Cpu;
        if asks_gpus || gpu_name(0).is_ok() {
            note = Some(
                "training on the processor, since train.precision = \"fixed16\" is computed on processors only for now"
                    .to_owned(),
            );
        }
    }
    DeviceDecision { gpu: None, note }
}

/// The name of a GPU of this machine.
fn gpu_name(number: usize) -> Result<String, CudaError> {
    let facts = Gpu::find()?;
    let found = facts.get(number).ok_or(CudaError::NoDevice)?;
    Ok(found.name.clone())
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
