//! A worker whose GPU has the whole state and updates it: one that trains alone, or one whose GPU reads what those of all other
//! workers have come to. Nothing comes back but what is asked for.
//!
//! Of workers that read each other's memory, each says by its vote on a step that its sums are there to be read. So the votes
//! are all that the hosts exchange in a step.

use super::lanes::CudaLanes;
use crate::TrainError;
use crate::copies::copy_parts;
use crate::device::{DeviceReplica, EpochPlan, Scorer, StateVectors};
use lockstep_base::progress::{Phase, enter};
use lockstep_gang::{KeptWriter, SharingCollective};
use lockstep_nn::LossSum;
use std::ops::Range;

/// A replica that a GPU updates.
pub(super) struct WholeReplica<'a> {
    lanes: CudaLanes<'a>,
    collective: Box<dyn SharingCollective>,
    /// Room for what is read: the state vector, the optimizer's vectors, and the average.
    vectors: [Vec<f32>; 3],
    average: Option<Vec<f32>>,
}

impl<'a> WholeReplica<'a> {
    /// Of an optimizer with so many vectors.
    pub(super) fn new(
        lanes: CudaLanes<'a>,
        collective: Box<dyn SharingCollective>,
        (len, planes): (usize, usize),
    ) -> Self {
        let vector = |is: bool| vec![0.0; if is { len } else { 0 }];
        Self {
            lanes,
            collective,
            vectors: [vector(true), vector(planes > 0), vector(planes > 1)],
            average: None,
        }
    }

    fn has_peers(&self) -> bool {
        self.collective.plan().workers() > 1
    }
}

impl DeviceReplica for WholeReplica<'_> {
    fn collective(&mut self) -> &mut dyn SharingCollective {
        &mut *self.collective
    }

    fn begin_epoch(&mut self, plan: EpochPlan) -> Result<(), TrainError> {
        self.lanes.begin_epoch(plan)
    }

    fn compute(&mut self) -> Result<(), TrainError> {
        self.lanes.queue_step()?;
        if self.has_peers() {
            enter(Phase::Data);
            self.lanes.send_ahead()?;
            enter(Phase::Forward);
        }
        Ok(())
    }

    fn finish(&mut self, vote: u64) -> Result<u64, TrainError> {
        if self.has_peers() {
            self.lanes.training.wait_for_sums()?;
            enter(Phase::Exchange);
        }
        self.collective.cast(vote)?;
        let vote = self.collective.end_step()?;
        if self.has_peers() {
            enter(Phase::Update);
            self.lanes.training.end_step()?;
        }
        self.lanes.end_step();
        Ok(vote)
    }

    fn mark(&mut self) -> Result<(), TrainError> {
        Ok(self.lanes.training.mark()?)
    }

    fn take_marks(&mut self) -> Result<Vec<u32>, TrainError> {
        Ok(self.lanes.training.take_marks()?)
    }

    fn epoch_losses(&mut self) -> Result<&mut [LossSum], TrainError> {
        self.lanes.epoch_losses()
    }

    fn take_recent_losses(&mut self, into: &mut [LossSum]) -> Result<(), TrainError> {
        self.lanes.take_recent_losses(into)
    }

    fn gradient_norm(&mut self) -> Result<Option<f64>, TrainError> {
        Ok(self.lanes.training.gradient_norm()?)
    }

    fn settle(&mut self) -> Result<(), TrainError> {
        self.lanes.report().map(|_| ())
    }

    fn gather_state(&mut self) -> Result<(), TrainError> {
        let training = &self.lanes.training;
        training.read_values(&mut self.vectors[0])?;
        if training.has_average() {
            let len = self.vectors[0].len();
            let average = self.average.get_or_insert_with(|| vec![0.0; len]);
            training.read_average(average)?;
        }
        Ok(())
    }

    fn gather_planes(&mut self) -> Result<(), TrainError> {
        for (number, plane) in self.vectors[1..].iter_mut().enumerate() {
            if !plane.is_empty() {
                self.lanes.training.read_plane(number, plane)?;
            }
        }
        Ok(())
    }

    fn vectors(&mut self) -> StateVectors<'_> {
        let [values, first, second] = &self.vectors;
        StateVectors {
            values,
            planes: [first, second],
            average: self.average.as_deref(),
        }
    }

    fn copy_state(&mut self, to: &mut KeptWriter, _all: bool) -> Result<(), TrainError> {
        self.settle()?;
        self.gather_state()?;
        self.gather_planes()?;
        let (rank, plan) = (self.collective.rank(), self.collective.plan());
        let chunks = (0..plan.chunks()).filter(|&chunk| plan.owner(chunk) == rank);
        let own: Vec<Range<usize>> = match plan.workers() {
            1 => std::iter::once(0..plan.len()).collect(),
            _ => chunks.map(|chunk| plan.chunk(chunk)).collect(),
        };
        copy_parts(&self.vectors(), &own, to);
        Ok(())
    }

    fn evaluation<'b>(
        &'b mut self,
        weights: Option<&'b [f32]>,
    ) -> Result<(Box<dyn Scorer + 'b>, &'b mut dyn SharingCollective), TrainError> {
        Ok((self.lanes.scorer(weights)?, &mut *self.collective))
    }
}
