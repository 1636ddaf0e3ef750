//! A worker of a gang on a GPU: the device computes this worker's partial sums, and the host exchanges them, updates, and
//! brings the new values.
//!
//! The exchange is the one of workers on processors, chunk by chunk and in the same order of sums, so that a gang may mix
//! them. The device waits for nothing but the new values, and the next batches are prepared while the exchange goes on.

use super::lanes::CudaLanes;
use crate::TrainError;
use crate::average::WeightAverage;
use crate::device::{DeviceReplica, EpochPlan, Scorer, StateVectors};
use crate::replica::{GangReplica, StepPlan};
use lockstep_base::progress::{Phase, enter};
use lockstep_gang::{KeptWriter, SharingCollective};
use lockstep_nn::{LossSum, MarkedPlaces};
use std::ops::Range;

/// A replica on a GPU, with others beside it.
pub(super) struct CudaGangReplica<'a> {
    pub(super) lanes: CudaLanes<'a>,
    pub(super) gang: GangReplica,
    pub(super) average: Option<WeightAverage>,
    /// What changes at all, and so is brought to the device after a step.
    pub(super) trained: Vec<Range<usize>>,
    /// The first lane's loss in the last step; 0 if it had no rows, or is another worker's.
    pub(super) first_loss: f64,
    pub(super) marked: MarkedPlaces,
    pub(super) marks: Vec<u32>,
}

impl CudaGangReplica<'_> {
    /// Brings the new values to the device.
    fn bring_values(&mut self) -> Result<(), TrainError> {
        let training = &mut self.lanes.training;
        let (to, from) = (training.new_values()?, self.gang.state.values());
        for range in &self.trained {
            to[range.clone()].copy_from_slice(&from[range.clone()]);
        }
        for range in &self.trained {
            training.queue_values(range.clone())?;
        }
        Ok(())
    }
}

impl DeviceReplica for CudaGangReplica<'_> {
    fn collective(&mut self) -> &mut dyn SharingCollective {
        &mut *self.gang.collective
    }

    fn begin_epoch(&mut self, plan: EpochPlan) -> Result<(), TrainError> {
        self.lanes.begin_epoch(plan)
    }

    fn compute(&mut self) -> Result<(), TrainError> {
        enter(Phase::Forward);
        self.lanes.queue_step()?;
        enter(Phase::Data);
        self.lanes.send_ahead()?;
        enter(Phase::Forward);
        let reports = self.lanes.report()?;
        let (program, update) = self.lanes.step();
        // The report of a lane without rows is of a step before.
        self.first_loss = match program.work.first() {
            Some(work) if work.lane == 0 => reports[0].last,
            _ => 0.0,
        };
        let plan = StepPlan {
            program,
            update,
            inputs: &[],
        };
        enter(Phase::Exchange);
        self.gang.begin(&plan)?;
        let present = &program.present[self.gang.collective.rank()];
        let sums = (0..present.iter().filter(|&&is| is).count())
            .map(|number| self.lanes.training.partial(number))
            .collect::<Result<Vec<_>, _>>()?;
        self.gang.take_partials(&plan, &sums)?;
        self.gang.computed(&plan)
    }

    fn finish(&mut self, vote: u64) -> Result<u64, TrainError> {
        let (program, update) = self.lanes.step();
        let plan = StepPlan {
            program,
            update,
            inputs: &[],
        };
        enter(Phase::Exchange);
        let vote = self.gang.finish(&plan, vote)?;
        enter(Phase::Update);
        self.bring_values()?;
        if let Some(average) = &mut self.average {
            average.add(self.gang.state.values());
        }
        self.lanes.end_step();
        Ok(vote)
    }

    fn mark(&mut self) -> Result<(), TrainError> {
        self.marks.push(MarkedPlaces::of_loss(self.first_loss));
        let step = self.lanes.steps_done();
        let values = self.gang.state.values();
        self.marked.look(step, values, &mut self.marks);
        Ok(())
    }

    fn take_marks(&mut self) -> Result<Vec<u32>, TrainError> {
        Ok(std::mem::take(&mut self.marks))
    }

    fn epoch_losses(&mut self) -> Result<&mut [LossSum], TrainError> {
        self.lanes.epoch_losses()
    }

    fn take_recent_losses(&mut self, into: &mut [LossSum]) -> Result<(), TrainError> {
        self.lanes.take_recent_losses(into)
    }

    fn gradient_norm(&mut self) -> Result<Option<f64>, TrainError> {
        Ok(self.gang.gradient_norm())
    }

    fn settle(&mut self) -> Result<(), TrainError> {
        Ok(())
    }

    fn gather_state(&mut self) -> Result<(), TrainError> {
        self.gang.gather_state()
    }

    fn gather_planes(&mut self) -> Result<(), TrainError> {
        self.gang.gather_planes()
    }

    fn vectors(&mut self) -> StateVectors<'_> {
        let [values, first, second] = self.gang.state.vectors();
        StateVectors {
            values,
            planes: [first, second],
            average: self.average.as_ref().and_then(WeightAverage::values),
        }
    }

    fn copy_state(&mut self, to: &mut KeptWriter, all: bool) -> Result<(), TrainError> {
        let average = self.average.as_ref().and_then(WeightAverage::values);
        self.gang.copy_state(average, to, all);
        Ok(())
    }

    fn evaluation<'b>(
        &'b mut self,
        weights: Option<&'b [f32]>,
    ) -> Result<(Box<dyn Scorer + 'b>, &'b mut dyn SharingCollective), TrainError> {
        let average = self.average.as_ref().and_then(WeightAverage::values);
        let scorer = self.lanes.scorer(weights.or(average))?;
        Ok((scorer, &mut *self.gang.collective))
    }
}
