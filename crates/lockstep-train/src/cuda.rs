//! A GPU as a device: a worker's lanes are computed together, and steps are queued there, many at a time.
//!
//! A worker that trains alone leaves everything to the GPU; what the host asks for is sums of losses now and then. In a
//! gang the GPU hands out the worker's partial sums of the gradient; they are exchanged and the state is updated as by
//! the processor ([`GangReplica`](crate::replica::GangReplica)), and the new values go to the GPU.

use crate::TrainError;
use crate::device::{
    Device, DeviceReplica, EpochPlan, Objective, ReplicaSetup, Scorer, StateVectors,
};
use crate::lanes::LaneProgram;
use crate::sets::Sets;
use crate::snapshot::Snapshot;
use lockstep_cuda::{
    CudaError, DataSet, Epoch, Gpu, LaneRows, ModelDescription, Setup, Training, WorkerBatch,
};
use lockstep_data::EpochOrder;
use lockstep_gang::SharingCollective;
use lockstep_nn::{LossSum, Model};

/// A network on a GPU.
pub(crate) struct CudaDevice {
    gpu: Gpu,
    /// What the network is; it computes nothing.
    model: Model,
    /// Rows that are evaluated at a time.
    evaluation_rows: usize,
}

impl CudaDevice {
    /// A network on this GPU that evaluates so many rows at a time.
    pub(crate) fn new(gpu: Gpu, model: Model, evaluation_rows: usize) -> Self {
        Self {
            gpu,
            model,
            evaluation_rows,
        }
    }
}

/// What a worker's lanes are in batches of one size.
fn worker_batch(program: &LaneProgram, first_lane: usize) -> WorkerBatch {
    // Each partial sum has buffers of its own: which lane is in each of them by now.
    let mut holders: Vec<Vec<Option<usize>>> = Vec::new();
    let (mut adds, mut partials) = (Vec::new(), Vec::new());
    for (place, work) in program.work.iter().enumerate() {
        if holders.len() <= work.partial {
            holders.resize(work.partial + 1, Vec::new());
        }
        let buffers = &mut holders[work.partial];
        if buffers.len() <= work.buffer {
            buffers.resize(work.buffer + 1, None);
        }
        buffers[work.buffer] = Some(place);
        for &(into, from) in &work.sums {
            let pair = (buffers[into], buffers[from]);
            let (Some(into), Some(from)) = pair else {
                unreachable!("sums are of lanes that were computed");
            };
            adds.push((into, from));
        }
    }
    partials.extend(holders.iter().filter_map(|buffers| *buffers.first()?));
    WorkerBatch {
        samples: program.batch,
        first: program.work.first().map_or(0, |work| work.rows.start),
        lanes: (program.work.iter())
            .map(|work| LaneRows {
                lane: work.lane - first_lane,
                rows: work.rows.len(),
            })
            .collect(),
        adds,
        partials,
    }
}
