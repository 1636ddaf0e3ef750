//! A GPU as a device: a worker's lanes are computed together, and steps are queued there, many at a time.
//!
//! A worker that trains alone leaves everything to the GPU; what the host asks for is sums of losses now and then. So do
//! workers whose GPUs read each other's memory. In other gangs, the host exchanges and updates.

mod feed;
mod gang;
mod lanes;
mod scorer;
mod whole;

use crate::TrainError;
use crate::average::WeightAverage;
use crate::device::{Device, DeviceReplica, Objective, ReplicaSetup};
use crate::host::state_of;
use crate::lanes::{LaneProgram, peer_sums};
use crate::prepare::{evaluation_rows, model_on};
use crate::replica::{ExchangeSetup, GangReplica};
use crate::sets::{DataFacts, Sets};
use crate::snapshot::Snapshot;
use feed::Feed;
use gang::CudaGangReplica;
use lanes::{CudaLanes, EpochPlace};
use lockstep_cuda::{
    Beginning, CudaError, Exchange, Gpu, InputPlace, LaneRows, MemoryNeeded, ModelDescription,
    PeerMemory, PeerOffer, PeerShape, Predictor, Setup, TargetShape, Training, WorkerBatch,
};
use lockstep_gang::SharingCollective;
use lockstep_nn::{Capacity, Model, Threads};
use lockstep_resolve::TrainingSettings;
pub(crate) use scorer::GpuScorer;
use whole::WholeReplica;

/// Steps whose marks the device keeps; older ones that are wanted are brought before.
const MARKS: usize = 1024;

/// A network on a GPU.
pub(crate) struct CudaDevice {
    gpu: Gpu,
    /// What the network is. It computes nothing but what the GPU is held against before it trains.
    model: Model,
    /// Rows that are evaluated at a time.
    evaluation_rows: usize,
    /// What others read, and what it reads of them, until there is a replica that does.
    peers: Option<PeerMemory>,
}

impl CudaDevice {
    /// A network on this GPU that evaluates so many rows at a time.
    pub(crate) fn new(gpu: Gpu, model: Model, evaluation_rows: usize) -> Self {
        Self {
            gpu,
            model,
            evaluation_rows,
            peers: None,
        }
    }

    /// Refuses a GPU that says something else of a row than the processor: a driver compiles the kernels, and nobody has
    /// tried all of them.
    fn check_bits(&mut self, sets: &Sets, state: &[f32]) -> Result<(), TrainError> {
        let description = ModelDescription::of(&self.model);
        let mut row = vec![0.0; sets.input_len()];
        let first = &sets.train_indices[..1];
        sets.train.gather(first, &sets.normaliser, &mut row);
        let mut predictor = Predictor::new(&self.gpu, description, state, 1)?;
        let (found, expected) = (predictor.scores(&row)?, self.model.scores(state, &row));
        let is_same =
            |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        match found.iter().zip(expected).all(is_same) {
            true => Ok(()),
            false => {
                let facts = self.gpu.facts();
                Err(TrainError::Cuda(CudaError::OtherBits {
                    index: facts.index,
                    name: facts.name.clone(),
                }))
            }
        }
    }
}

impl Device for CudaDevice {
    fn model(&self) -> &Model {
        &self.model
    }

    fn fingerprint(&self) -> u64 {
        lockstep_nn::fingerprint_in(self.model.precision())
    }

    fn offer(&mut self, setup: &ReplicaSetup<'_>, rank: usize) -> Option<PeerOffer> {
        let shape = PeerShape {
            partials: setup.exchange.plan.partials_of(rank).len(),
            numbers: self.model.layout().len(),
        };
        // Without memory for it, or without a driver that shares it, the hosts exchange.
        let memory = PeerMemory::new(&self.gpu, shape).ok()?;
        let offer = memory.offer(&self.gpu).ok()?;
        self.peers = Some(memory);
        Some(offer)
    }

    fn open(&mut self, offers: &[PeerOffer]) -> bool {
        let peers = self.peers.as_mut();
        peers.is_some_and(|peers| peers.open(&self.gpu, offers).is_ok())
    }

    fn replica<'a>(
        &'a mut self,
        sets: &'a Sets,
        setup: ReplicaSetup<'_>,
        beginning: &Snapshot,
        collective: Box<dyn SharingCollective>,
    ) -> Result<Box<dyn DeviceReplica + 'a>, TrainError> {
        self.check_bits(sets, &beginning.state)?;
        let settings = setup.settings;
        let layout = self.model.layout();
        let planes = setup.optimizer().planes();
        let plan = &setup.exchange.plan;
        let own = plan.lanes_of(collective.rank());
        let peers = self.peers.take().filter(|_| setup.has_peers);
        let feed = Feed::new(&self.gpu, settings, sets)?;
        let planes_before: Vec<&[f32]> = beginning.planes.iter().map(|plane| &plane[..]).collect();
        let rows = (self.evaluation_rows, sets.train_indices.len());
        let inputs = (feed.place(), feed.shape());
        let worker = worker_setup(&self.model, &setup, collective.rank(), rows, inputs);
        let begin = Beginning {
            values: &beginning.state,
            planes: &planes_before,
            average: (beginning.average.as_deref()).filter(|_| worker.average.is_some()),
        };
        let updates = worker.exchange != Exchange::Host;
        let training = Training::new(&self.gpu, worker, feed.set(), peers, begin)?;
        let aside = setup.programs.iter().map(|program| program.aside).max();
        let lanes = CudaLanes {
            training,
            feed,
            sets,
            objective: Objective::of(&self.model),
            programs: setup.programs,
            steps_per_epoch: setup.steps_per_epoch,
            own,
            losses: beginning.position.lane_sums.clone(),
            epoch: EpochPlace::default(),
        };
        if updates {
            let sizes = (beginning.state.len(), planes);
            return Ok(Box::new(WholeReplica::new(lanes, collective, sizes)));
        }
        let exchange = ExchangeSetup {
            layout,
            exchange: &setup.exchange,
            compute: Threads::default(),
            planes,
            clip_norm: settings.learner.clip_norm,
            aside: aside.unwrap_or(0),
        };
        let state = state_of(layout, beginning, planes);
        Ok(Box::new(CudaGangReplica {
            lanes,
            gang: GangReplica::new(collective, state, exchange)?,
            average: (settings.learner.average)
                .map(|kept| WeightAverage::new(kept, layout.trained(), beginning.average.clone())),
            trained: layout.trained(),
            first_loss: 0.0,
            marked: setup.marked,
            marks: Vec::new(),
        }))
    }
}

/// What the worker of this rank is made with, which evaluates so many rows at a time and has so many samples in an epoch.
fn worker_setup(
    model: &Model,
    setup: &ReplicaSetup<'_>,
    rank: usize,
    (scored_rows, samples): (usize, usize),
    (inputs, shape): (InputPlace, Option<TargetShape>),
) -> Setup {
    let settings = setup.settings;
    let plan = &setup.exchange.plan;
    let own = plan.lanes_of(rank);
    let exchange = match (plan.workers(), setup.has_peers) {
        (1, _) => Exchange::Alone,
        (_, false) => Exchange::Host,
        (_, true) => {
            let sums = |program: &LaneProgram| peer_sums(plan, program.batch);
            Exchange::Peers(setup.programs.each_ref().map(sums))
        }
    };
    let updates = exchange != Exchange::Host;
    Setup {
        model: ModelDescription::of(model),
        optimizer: setup.optimizer(),
        seed: settings.seed,
        lanes: own.len(),
        batches: (setup.programs.each_ref()).map(|program| worker_batch(program, own.start)),
        samples,
        scored_rows,
        inputs,
        shape,
        clip_norm: settings.learner.clip_norm.filter(|_| updates),
        average: settings.learner.average.filter(|_| updates),
        marks: if updates { MARKS } else { 0 },
        exchange,
    }
}

/// What the first worker needs of a GPU's memory, and the training set there: at the most, which is what it needs if the GPUs
/// of a gang exchange themselves. No GPU is needed to say so.
pub(crate) fn memory_needed(
    settings: &TrainingSettings,
    data: &DataFacts,
) -> Result<(MemoryNeeded, usize), TrainError> {
    let one = Capacity { rows: 1, lanes: 1 };
    let model = model_on(&Threads::default(), settings, data, one)?;
    let mut setup = ReplicaSetup::of(settings, data, model.layout(), 0)?;
    setup.has_peers = true;
    let numbers = data.train * ModelDescription::of(&model).inputs();
    let (inputs, set) = feed::forecast(settings, numbers);
    let rows = (evaluation_rows(settings, data, &model), data.train);
    let worker = worker_setup(&model, &setup, 0, rows, (inputs, None));
    Ok((worker.memory_needed()?, set))
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
