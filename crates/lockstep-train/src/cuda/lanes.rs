//! A worker's lanes on a GPU: where the epoch in progress stands, and what the lanes have come to.

use super::feed::Feed;
use crate::TrainError;
use crate::device::{EpochPlan, Objective, Scorer};
use crate::lanes::LaneProgram;
use crate::sets::Sets;
use lockstep_cuda::{LaneReport, Training};
use lockstep_nn::{LossSum, Update};
use std::ops::Range;

/// The lanes of a worker, and the training that computes them.
pub(super) struct CudaLanes<'a> {
    pub(super) training: Training,
    pub(super) feed: Feed,
    pub(super) sets: &'a Sets,
    pub(super) objective: Objective,
    pub(super) programs: [LaneProgram; 2],
    pub(super) steps_per_epoch: u64,
    /// Which of the run's lanes these are.
    pub(super) own: Range<usize>,
    /// What all lanes have come to in the epoch; those of others are as they were told.
    pub(super) losses: Vec<LossSum>,
    pub(super) epoch: EpochPlace,
}

/// How far an epoch is.
#[derive(Default)]
pub(super) struct EpochPlace {
    /// Which it is, counted from 1.
    number: u32,
    /// The run's number of its first step.
    first_step: u64,
    /// Steps of it that are done.
    done: u64,
    updates: Vec<Update>,
}

impl CudaLanes<'_> {
    /// Begins an epoch, or the rest of one.
    pub(super) fn begin_epoch(&mut self, plan: EpochPlan) -> Result<(), TrainError> {
        if plan.done == 0 {
            self.losses.fill(LossSum::default());
        }
        let sums = &self.losses[self.own.clone()];
        let (training, sets) = (&mut self.training, self.sets);
        self.feed.begin_epoch(training, sets, &plan, sums)?;
        self.epoch = EpochPlace {
            number: plan.epoch,
            first_step: plan.first_step,
            done: plan.done,
            updates: plan.updates,
        };
        Ok(())
    }

    /// Queues the next step, and sends batches ahead of the device.
    pub(super) fn queue_step(&mut self) -> Result<(), TrainError> {
        let place = (self.epoch.done, self.steps_per_epoch);
        let (training, programs) = (&mut self.training, &self.programs);
        self.feed.send(training, self.sets, programs, place)?;
        Ok(training.queue_step()?)
    }

    /// Sends batches of steps that follow the one that was queued.
    pub(super) fn send_ahead(&mut self) -> Result<(), TrainError> {
        let place = (self.epoch.done + 1, self.steps_per_epoch);
        match place.0 < place.1 {
            true => {
                let (training, programs) = (&mut self.training, &self.programs);
                self.feed.send(training, self.sets, programs, place)
            }
            false => Ok(()),
        }
    }

    /// What the lanes do in the step in progress, and how it updates.
    pub(super) fn step(&self) -> (&LaneProgram, Update) {
        let is_last = self.epoch.done + 1 == self.steps_per_epoch;
        let update = self.epoch.updates[self.epoch.done as usize];
        (&self.programs[usize::from(is_last)], update)
    }

    /// Counts a step as done.
    pub(super) fn end_step(&mut self) {
        self.epoch.done += 1;
    }

    /// The run's number of the step that was done last, counted from 1.
    pub(super) fn steps_done(&self) -> u64 {
        self.epoch.first_step + self.epoch.done
    }

    /// What the lanes have come to, once all steps are done.
    ///
    /// # Errors
    /// When a step has failed, or a loss was no number.
    pub(super) fn report(&mut self) -> Result<Vec<LaneReport>, TrainError> {
        let reports = self.training.report()?;
        let diverged = reports.iter().filter_map(|lane| lane.diverged);
        match diverged.min_by_key(|(step, _)| *step) {
            Some((step, loss)) => Err(TrainError::Diverged {
                loss,
                step: step + 1,
                epoch: self.epoch.number,
            }),
            None => Ok(reports),
        }
    }

    /// What all lanes have come to in the epoch.
    pub(super) fn epoch_losses(&mut self) -> Result<&mut [LossSum], TrainError> {
        let reports = self.report()?;
        for (sum, report) in self.losses[self.own.clone()].iter_mut().zip(reports) {
            *sum = report.epoch;
        }
        Ok(&mut self.losses)
    }

    /// Writes what the lanes have come to since the last call.
    pub(super) fn take_recent_losses(&mut self, into: &mut [LossSum]) -> Result<(), TrainError> {
        let reports = self.report()?;
        into.fill(LossSum::default());
        for (sum, report) in into[self.own.clone()].iter_mut().zip(reports) {
            *sum = report.window;
        }
        Ok(self.training.begin_window()?)
    }

    /// The network with these values, or with the average of its own where there is one, or its own.
    pub(super) fn scorer<'b>(
        &'b mut self,
        weights: Option<&[f32]>,
    ) -> Result<Box<dyn Scorer + 'b>, TrainError> {
        self.training.load(weights)?;
        Ok(Box::new(CudaScorer {
            training: &mut self.training,
            objective: self.objective,
        }))
    }
}

/// A network on a GPU that is asked.
struct CudaScorer<'a> {
    training: &'a mut Training,
    objective: Objective,
}

impl Scorer for CudaScorer<'_> {
    fn objective(&self) -> Objective {
        self.objective
    }

    fn scores(&mut self, inputs: &[f32]) -> Result<&[f32], TrainError> {
        Ok(self.training.scores(inputs)?)
    }
}
