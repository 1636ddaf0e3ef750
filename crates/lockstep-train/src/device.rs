//! The seam between training and the device that it is computed on.
//!
//! A [`Device`] opens a worker's [`DeviceReplica`]: its copy of the network, which computes steps and exchanges them
//! with the other workers. The seam lies here, at whole steps, and not at layers or chunks, so that a device may keep
//! all numbers in its own memory, compute its lanes together, and have many steps under way: whoever trains asks for
//! results only where it needs them, at votes, reports and the end of an epoch. [`HostDevice`](crate::host::HostDevice)
//! is the processor.
//!
//! Every device gives the same bits, and the gang's exchange is the same for all of them, chunk by chunk: a gang may mix
//! them. Devices that can read each other's memory may exchange without the host instead ([`crate::peers`]).

use crate::TrainError;
use crate::lanes::LaneProgram;
use crate::prepare::exchange_plan;
use crate::sets::{DataFacts, Sets};
use crate::snapshot::Snapshot;
use crate::{exchange::ExchangePlan, prepare};
use lockstep_cuda::PeerOffer;
use lockstep_gang::{KeptWriter, SharingCollective};
use lockstep_nn::{Layout, Loss, LossSum, MarkedPlaces, Model, Optimizer, Update};
use lockstep_resolve::TrainingSettings;

/// What networks are computed on.
pub(crate) trait Device: Send {
    /// The network that it was opened for: where everything lies, and how it begins.
    fn model(&self) -> &Model;

    /// A number that is the same for all devices that compute the same bits.
    fn fingerprint(&self) -> u64;

    /// What other devices of this machine read this one's partial sums with, when it trains as this rank; nothing of a device
    /// whose memory others cannot read.
    fn offer(&mut self, setup: &ReplicaSetup<'_>, rank: usize) -> Option<PeerOffer> {
        let _ = (setup, rank);
        None
    }

    /// Opens what all ranks offer, this one included. Says whether that worked.
    fn open(&mut self, offers: &[PeerOffer]) -> bool {
        let _ = offers;
        false
    }

    /// Joins the gang that `collective` reaches with the state of `beginning`.
    fn replica<'a>(
        &'a mut self,
        sets: &'a Sets,
        setup: ReplicaSetup<'_>,
        beginning: &Snapshot,
        collective: Box<dyn SharingCollective>,
    ) -> Result<Box<dyn DeviceReplica + 'a>, TrainError>;
}

/// What a replica is made for.
pub(crate) struct ReplicaSetup<'a> {
    pub(crate) settings: &'a TrainingSettings,
    pub(crate) exchange: ExchangePlan,
    /// This rank's part of a full batch, and of the last one of an epoch.
    pub(crate) programs: [LaneProgram; 2],
    pub(crate) steps_per_epoch: u64,
    /// What is looked at after steps.
    pub(crate) marked: MarkedPlaces,
    /// Whether the ranks' devices exchange gradients themselves, and have opened what they need.
    pub(crate) has_peers: bool,
}

impl<'a> ReplicaSetup<'a> {
    /// For the training of `rank` on such data.
    pub(crate) fn of(
        settings: &'a TrainingSettings,
        data: &DataFacts,
        layout: &Layout,
        rank: usize,
    ) -> Result<Self, TrainError> {
        Self::on_hosts(settings, data, layout, (rank, None))
    }

    /// The same where workers are on several hosts, so many on each.
    pub(crate) fn on_hosts(
        settings: &'a TrainingSettings,
        data: &DataFacts,
        layout: &Layout,
        (rank, hosts): (usize, Option<&[usize]>),
    ) -> Result<Self, TrainError> {
        let mut exchange = exchange_plan(settings, data, layout)?;
        if let Some(hosts) = hosts {
            exchange.plan = exchange.plan.on_hosts(hosts)?;
        }
        let full = prepare::full_batch(settings, data);
        let last = match data.train % full {
            0 => full,
            rest => rest,
        };
        Ok(Self {
            programs: [full, last].map(|batch| LaneProgram::new(&exchange.plan, rank, batch)),
            steps_per_epoch: prepare::steps_per_epoch(settings, data),
            marked: MarkedPlaces::new(layout),
            has_peers: false,
            exchange,
            settings,
        })
    }

    pub(crate) fn optimizer(&self) -> Optimizer {
        self.settings.learner.optimizer
    }
}

/// An epoch, or the rest of one.
pub(crate) struct EpochPlan {
    /// Which it is, counted from 1.
    pub(crate) epoch: u32,
    /// Steps of it that were done before.
    pub(crate) done: u64,
    /// The run's number of its first step.
    pub(crate) first_step: u64,
    /// How the parameters are updated after each of its steps.
    pub(crate) updates: Vec<Update>,
}

/// All vectors of a replica's state, in this process's memory.
pub(crate) struct StateVectors<'a> {
    pub(crate) values: &'a [f32],
    /// The optimizer's, empty where it has none.
    pub(crate) planes: [&'a [f32]; 2],
    /// The average of the weights, if the job keeps one.
    pub(crate) average: Option<&'a [f32]>,
}

/// A worker's replica of what is trained, on some device.
///
/// All ranks call the same methods in the same order. Methods may return before the device has done what they ask for;
/// those that hand numbers out wait for it.
pub(crate) trait DeviceReplica {
    /// The exchange with the other workers.
    fn collective(&mut self) -> &mut dyn SharingCollective;

    /// Begins an epoch, or the rest of one, whose steps then follow.
    fn begin_epoch(&mut self, epoch: EpochPlan) -> Result<(), TrainError>;

    /// Computes the gradients of this rank's lanes in the next step, and hands out what others need of it.
    ///
    /// # Errors
    /// When a peer is lost, or a loss is no number any more; that may be noticed some steps later.
    fn compute(&mut self) -> Result<(), TrainError>;

    /// Updates the state by the step, and ends it with a vote. Returns the largest vote.
    fn finish(&mut self, vote: u64) -> Result<u64, TrainError>;

    /// Looks at the marked places, and keeps what is found until [`DeviceReplica::take_marks`].
    fn mark(&mut self) -> Result<(), TrainError>;

    /// What was found since the last call: for each look a mark of the loss and one of every tensor.
    fn take_marks(&mut self) -> Result<Vec<u32>, TrainError>;

    /// What this rank's lanes have summed up in the epoch so far, by lane; those of others are as they were.
    fn epoch_losses(&mut self) -> Result<&mut [LossSum], TrainError>;

    /// Writes what this rank's lanes have summed up since the last call, by lane.
    fn take_recent_losses(&mut self, into: &mut [LossSum]) -> Result<(), TrainError>;

    /// The norm of the last gradient before it was clipped; none where none is.
    fn gradient_norm(&mut self) -> Result<Option<f64>, TrainError>;

    /// Waits for all that was asked for.
    fn settle(&mut self) -> Result<(), TrainError>;

    /// Brings all values to every rank. All ranks come here together.
    fn gather_state(&mut self) -> Result<(), TrainError>;

    /// Brings the optimizer's vectors to every rank. All ranks come here together.
    fn gather_planes(&mut self) -> Result<(), TrainError>;

    /// This rank's vectors. What others own is only up to date once it was gathered.
    fn vectors(&mut self) -> StateVectors<'_>;

    /// Copies what this rank holds of the state after the last step: every chunk that no other rank does. What never
    /// changes may be left out unless `all` is wanted.
    fn copy_state(&mut self, to: &mut KeptWriter, all: bool) -> Result<(), TrainError>;

    /// The network with `weights`, or with its own that are measured and kept; and the exchange, to add up what it says.
    fn evaluation<'b>(
        &'b mut self,
        weights: Option<&'b [f32]>,
    ) -> Result<(Box<dyn Scorer + 'b>, &'b mut dyn SharingCollective), TrainError>;
}

/// What a network is trained for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Objective {
    /// What it minimises.
    pub(crate) loss: Loss,
    /// Numbers that it says of every row.
    pub(crate) outputs: usize,
}

impl Objective {
    /// That of a network on the processor.
    pub(crate) fn of(model: &Model) -> Self {
        Self {
            loss: model.loss(),
            outputs: model.outputs(),
        }
    }
}

/// A network that says something of rows.
pub(crate) trait Scorer {
    /// What it was trained to minimise.
    fn objective(&self) -> Objective;

    /// The outputs for some rows, row after row, with the running statistics and without dropout. Those of a row do not
    /// depend on the others.
    ///
    /// # Panics
    /// When there are more rows than the network was built for, or a part of one.
    fn scores(&mut self, inputs: &[f32]) -> Result<&[f32], TrainError>;
}
