//! A GPU as a device: a worker's lanes are computed together, and steps are queued there, many at a time.
//!
//! A worker that trains alone leaves everything to the GPU; what the host asks for is sums of losses now and then.

mod alone;
mod feed;

use crate::TrainError;
use crate::device::{Device, DeviceReplica, Objective, ReplicaSetup};
use crate::lanes::LaneProgram;
use crate::sets::Sets;
use crate::snapshot::Snapshot;
use alone::AloneReplica;
use feed::Feed;
use lockstep_cuda::{Beginning, Gpu, LaneRows, ModelDescription, Setup, Training, WorkerBatch};
use lockstep_gang::SharingCollective;
use lockstep_nn::Model;

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

impl Device for CudaDevice {
    fn model(&self) -> &Model {
        &self.model
    }

    fn fingerprint(&self) -> u64 {
        lockstep_nn::fingerprint()
    }

    fn replica<'a>(
        &'a mut self,
        sets: &'a Sets,
        setup: ReplicaSetup<'_>,
        beginning: &Snapshot,
        collective: Box<dyn SharingCollective>,
    ) -> Result<Box<dyn DeviceReplica + 'a>, TrainError> {
        let settings = setup.settings;
        let own = setup.exchange.plan.lanes_of(collective.rank());
        let feed = Feed::new(&self.gpu, settings, sets)?;
        let planes: Vec<&[f32]> = beginning.planes.iter().map(|plane| &plane[..]).collect();
        let worker = Setup {
            model: ModelDescription::of(&self.model),
            optimizer: setup.optimizer(),
            seed: settings.seed,
            lanes: own.len(),
            batches: (setup.programs.each_ref()).map(|program| worker_batch(program, own.start)),
            samples: sets.train_indices.len(),
            scored_rows: self.evaluation_rows,
            inputs: feed.place(),
            shape: feed.shape(),
            is_alone: true,
        };
        let begin = Beginning {
            values: &beginning.state,
            planes: &planes,
        };
        let training = Training::new(&self.gpu, worker, feed.set(), begin)?;
        let objective = Objective::of(&self.model);
        Ok(Box::new(AloneReplica::new(
            training, feed, sets, objective, setup, beginning, collective,
        )))
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
