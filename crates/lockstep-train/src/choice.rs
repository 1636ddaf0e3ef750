//! Which device a network is computed on: decided once for a gang, and opened by each worker.
//!
//! The weights do not depend on it, but the exchange does: a GPU hands out gradients and nothing else, so a gang in which
//! there may be one exchanges all layers as gradients. That is decided by the coordinator and told to all.

use crate::TrainError;
use crate::cuda::CudaDevice;
use crate::device::Device;
use crate::host::HostDevice;
use crate::prepare::{evaluation_rows, model_on, threads_here, working_model};
use crate::sets::DataFacts;
use lockstep_cuda::DeviceDecision;
use lockstep_nn::{Capacity, Threads};
use lockstep_resolve::TrainingSettings;

/// Decides for the gang of a job: `asks_gpus` says whether a cluster keeps GPUs for its workers.
pub(crate) fn decide(settings: &mut TrainingSettings, asks_gpus: bool) -> DeviceDecision {
    let mut decision = settings.device.decide(asks_gpus);
    settings.device = decision.choice;
    settings.gradients_only = decision.gpu.is_some();
    let (workers, shared) = (settings.workers, decision.shared);
    if shared > 0 && workers > shared {
        let gpus = match shared {
            1 => "one GPU".to_owned(),
            many => format!("{many} GPUs"),
        };
        decision.note = Some(format!(
            "{workers} workers share {gpus}; one for each computes all of its lanes together and is faster: --workers {shared}, \
             with the same weights"
        ));
    }
    decision
}

/// A device that was opened for a worker.
pub(crate) struct WorkerDevice {
    /// The device, with the job's network on it.
    pub(crate) device: Box<dyn Device>,
    /// How many rows it evaluates at a time.
    pub(crate) evaluation_rows: usize,
    /// What a person may not expect of it.
    pub(crate) note: Option<String>,
}

/// Opens the device of the worker of this rank.
pub(crate) fn open(
    settings: &TrainingSettings,
    data: &DataFacts,
    rank: usize,
) -> Result<WorkerDevice, TrainError> {
    let opened = settings.device.open(rank)?;
    let (device, evaluation_rows): (Box<dyn Device>, usize) = match opened.gpu {
        Some(gpu) => {
            let one = Capacity { rows: 1, lanes: 1 };
            let model = model_on(&Threads::default(), settings, data, one)?;
            let rows = evaluation_rows(settings, data, &model);
            (Box::new(CudaDevice::new(gpu, model, rows)), rows)
        }
        None => {
            let threads = threads_here(settings, data)?;
            let (model, rows) = working_model(settings, data, &threads)?;
            (Box::new(HostDevice::new(model)), rows)
        }
    };
    Ok(WorkerDevice {
        device,
        evaluation_rows,
        note: opened.note.map(|note| format!("worker {rank} is {note}")),
    })
}
