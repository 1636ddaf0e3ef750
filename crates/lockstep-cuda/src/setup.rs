//! What is trained, and which part of it: all that a [`Training`](crate::Training) is made with.

use crate::error::CudaError;
use crate::forecast::MemoryNeeded;
use crate::network::{are_addable, merges};
use crate::peers::PeerShape;
use crate::plan::Plan;
use crate::ring::SlotShape;
use crate::rows::{RowShape, TargetShape};
use lockstep_nn::{Layout, Loss, Model, OperationChain, Optimizer};

/// A network as lockstep-nn has built it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelDescription {
    /// What it computes.
    pub operations: OperationChain,
    /// Where every tensor lies in the state vector.
    pub layout: Layout,
    /// What it minimises.
    pub loss: Loss,
}

impl ModelDescription {
    /// Of a model, which may have been built for a single row.
    pub fn of(model: &Model) -> Self {
        Self {
            operations: model.operations(),
            layout: model.layout().clone(),
            loss: model.loss(),
        }
    }

    /// Numbers of a row of inputs.
    pub fn inputs(&self) -> usize {
        self.operations.input.len()
    }

    /// Numbers that it says of every row.
    pub fn outputs(&self) -> usize {
        self.operations.output().len()
    }
}

/// One of a worker's lanes, in batches of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneRows {
    /// Which of the worker's lanes it is, counted from 0.
    pub lane: usize,
    /// How many rows it has; at least one.
    pub rows: usize,
}

/// A worker's part of batches of one size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerBatch {
    /// Samples of the batch, over all workers.
    pub samples: usize,
    /// Where in the batch the worker's rows begin. They follow each other.
    pub first: usize,
    /// The lanes that have rows, in order.
    pub lanes: Vec<LaneRows>,
    /// Which sums are formed of the lanes' gradients, in order, by places in `lanes`: the second is added to the first.
    pub adds: Vec<(usize, usize)>,
    /// Which lanes, by their places, have the worker's partial sums then. A worker that trains alone has one; one without
    /// rows has none.
    pub partials: Vec<usize>,
}

impl WorkerBatch {
    /// Rows of this worker.
    pub fn rows(&self) -> usize {
        self.lanes.iter().map(|lane| lane.rows).sum()
    }

    /// Rows of the lane that has most.
    pub(crate) fn longest_lane(&self) -> usize {
        let rows = self.lanes.iter().map(|lane| lane.rows);
        rows.max().unwrap_or(0)
    }

    /// For each lane how many sums of lanes are complete after it, if they are added in their order.
    pub(crate) fn merges(&self) -> Option<Vec<u32>> {
        merges(self.lanes.len(), &self.adds)
    }

    fn check(&self, lanes: usize, is_alone: bool) -> Result<(), CudaError> {
        let places = self.lanes.len();
        let pairs = self.adds.iter().flat_map(|&(into, from)| [into, from]);
        let is_place = |place: usize| place < places;
        let wrong = |what, found: String, expected: String| {
            Err(CudaError::Mismatch {
                what,
                found,
                expected,
            })
        };
        if let Some(lane) = self.lanes.iter().find(|lane| lane.lane >= lanes) {
            return wrong(
                "a lane",
                lane.lane.to_string(),
                format!("one below {lanes}"),
            );
        }
        if self.lanes.iter().any(|lane| lane.rows == 0) {
            return wrong(
                "the rows of a lane of a batch",
                "0".to_owned(),
                "at least 1".to_owned(),
            );
        }
        if self.first + self.rows() > self.samples {
            let found = format!("{} rows from {} on", self.rows(), self.first);
            return wrong(
                "a worker's rows",
                found,
                format!("some of {}", self.samples),
            );
        }
        if let Some(place) = pairs
            .chain(self.partials.iter().copied())
            .find(|&place| !is_place(place))
        {
            let expected = format!("one below {places}");
            return wrong("the place of a lane", place.to_string(), expected);
        }
        if is_alone && places > 0 && self.partials.len() != 1 {
            let found = self.partials.len().to_string();
            return wrong(
                "partial sums of a worker that trains alone",
                found,
                "1".to_owned(),
            );
        }
        Ok(())
    }
}

/// Where the rows of batches come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputPlace {
    /// Samples of a data set that lies in the GPU's memory.
    Resident,
    /// Images that lie there. The host prepares each batch, but for its inputs: of each row it says how the image is seen.
    Images,
    /// The host prepares each batch.
    Host,
}

impl InputPlace {
    /// Whether the host prepares each batch, or a part of it.
    pub(crate) fn is_prepared(self) -> bool {
        match self {
            Self::Resident => false,
            Self::Images | Self::Host => true,
        }
    }
}

/// What a training is made with.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// The network.
    pub model: ModelDescription,
    /// How parameters follow their gradient.
    pub optimizer: Optimizer,
    /// The run's seed.
    pub seed: u64,
    /// How many lanes the worker has.
    pub lanes: usize,
    /// Its part of a full batch, and of the last one of an epoch.
    pub batches: [WorkerBatch; 2],
    /// Samples of an epoch.
    pub samples: usize,
    /// The most rows that are scored at a time.
    pub scored_rows: usize,
    /// Where the rows of batches come from.
    pub inputs: InputPlace,
    /// How rows count; none where all count as they are.
    pub shape: Option<TargetShape>,
    /// The longest that the gradient may be, if it is clipped; only where the device updates, as the next two.
    pub clip_norm: Option<f64>,
    /// How much of an average of the weights a step keeps, if there is one.
    pub average: Option<f64>,
    /// How many looks at the parameters are kept until they are taken.
    pub marks: usize,
    /// Who adds up the workers' gradients and updates by them.
    pub exchange: Exchange,
}

/// How a worker's gradients meet those of the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exchange {
    /// There are no others: the device updates, and has the optimizer's vectors.
    Alone,
    /// Through the host: a step ends with this worker's partial sums, and whoever has those of all brings new values.
    Host,
    /// The workers' devices read each other's memory. Each adds up all partial sums, those of a full batch and of the last one
    /// in this order, and updates as if it were alone.
    Peers([Vec<PeerSum>; 2]),
}

/// A partial sum of some worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerSum {
    /// The worker's rank.
    pub rank: usize,
    /// Which of its partial sums in this batch it is.
    pub partial: usize,
    /// How many sums are complete after it, each of the two newest that are not yet added.
    pub merges: u32,
}

impl Exchange {
    /// Whether the device updates the parameters.
    pub(crate) fn updates(&self) -> bool {
        *self != Self::Host
    }

    /// The sums that devices exchange themselves.
    pub(crate) fn peer_sums(&self) -> Option<&[Vec<PeerSum>; 2]> {
        match self {
            Self::Peers(sums) => Some(sums),
            Self::Alone | Self::Host => None,
        }
    }
}

impl Setup {
    /// Steps of an epoch.
    pub fn steps(&self) -> usize {
        self.samples.div_ceil(self.batches[0].samples.max(1))
    }

    /// Which batch a step of an epoch has: the full one, 0, or the last one.
    pub(crate) fn which_batch(&self, in_epoch: usize) -> usize {
        usize::from(in_epoch + 1 == self.steps())
    }

    /// What there is of each row.
    pub fn row_shape(&self) -> RowShape {
        let model = &self.model;
        RowShape::of(
            [model.inputs(), model.outputs()],
            model.loss,
            self.shape.as_ref(),
        )
    }

    /// What there is of a batch that the host prepares.
    pub(crate) fn slot_shape(&self) -> SlotShape {
        let mut row = self.row_shape();
        let sees_images = self.inputs == InputPlace::Images;
        if sees_images {
            row.inputs = 0;
        }
        SlotShape {
            row,
            sees_images,
            mixes_images: sees_images && self.is_mixed(),
            has_factor: self.shape.is_some(),
        }
    }

    /// Whether each sample is mixed with another.
    pub(crate) fn is_mixed(&self) -> bool {
        self.shape.as_ref().is_some_and(|shape| shape.is_mixed)
    }

    /// Rows of the worker's largest batch.
    pub(crate) fn batch_rows(&self) -> usize {
        let rows = self.batches.iter().map(WorkerBatch::rows);
        rows.max().unwrap_or(0)
    }

    /// Rows that memory is planned for.
    pub(crate) fn most_rows(&self) -> usize {
        self.batch_rows().max(self.scored_rows)
    }

    /// The optimizer's vectors that the device has.
    pub(crate) fn planes(&self) -> usize {
        match self.exchange.updates() {
            true => self.optimizer.planes(),
            false => 0,
        }
    }

    /// How much memory the worker has for partial sums that other devices read.
    pub fn peer_shape(&self) -> PeerShape {
        let partials = self.batches.iter().map(|batch| batch.partials.len());
        PeerShape {
            partials: partials.max().unwrap_or(0),
            numbers: self.model.layout.len(),
        }
    }

    /// What training needs of a GPU's memory, beside the data set. No GPU is needed to say so.
    ///
    /// # Errors
    /// When there is no kernel for something in the network, or the parts do not fit.
    pub fn memory_needed(&self) -> Result<MemoryNeeded, CudaError> {
        Ok(Plan::new(self, [0; 2])?.needs())
    }

    pub(crate) fn check(&self) -> Result<(), CudaError> {
        let [full, last] = &self.batches;
        for batch in [full, last] {
            batch.check(self.lanes, self.exchange == Exchange::Alone)?;
        }
        if let Some(sums) = self.exchange.peer_sums()
            && !sums.iter().all(|sums| are_addable(sums))
        {
            return Err(CudaError::Mismatch {
                what: "sums of all workers",
                found: format!("{sums:?}"),
                expected: "some that come to one".to_owned(),
            });
        }
        if self.is_mixed() && !self.inputs.is_prepared() {
            return Err(CudaError::Mismatch {
                what: "mixed samples",
                found: "a resident data set".to_owned(),
                expected: "batches that the host prepares, or images".to_owned(),
            });
        }
        let extras = [
            self.clip_norm.is_some(),
            self.average.is_some(),
            self.marks > 0,
        ];
        if !self.exchange.updates() && extras.contains(&true) {
            return Err(CudaError::Mismatch {
                what: "clipping, an average or marks on the device",
                found: "a worker whose host updates".to_owned(),
                expected: "one whose device does".to_owned(),
            });
        }
        let of_last = match self.samples % full.samples.max(1) {
            0 => full.samples,
            rest => rest,
        };
        if last.samples != of_last {
            return Err(CudaError::Mismatch {
                what: "the samples of the last batch",
                found: last.samples.to_string(),
                expected: of_last.to_string(),
            });
        }
        Ok(())
    }
}
