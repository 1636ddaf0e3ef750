//! A worker that trains alone: everything that a step needs lies on the GPU, and nothing comes back but what is asked for.

use super::feed::Feed;
use crate::TrainError;
use crate::device::{DeviceReplica, EpochPlan, Objective, ReplicaSetup, Scorer, StateVectors};
use crate::lanes::LaneProgram;
use crate::marks::MarkedPlaces;
use crate::sets::Sets;
use crate::snapshot::Snapshot;
use lockstep_cuda::{LaneReport, Training};
use lockstep_gang::SharingCollective;
use lockstep_nn::LossSum;

/// A replica on a GPU, without others beside it.
pub(super) struct AloneReplica<'a> {
    training: Training,
    feed: Feed,
    sets: &'a Sets,
    collective: Box<dyn SharingCollective>,
    objective: Objective,
    programs: [LaneProgram; 2],
    steps_per_epoch: u64,
    /// The epoch in progress, counted from 1, and its steps that were queued.
    epoch: u32,
    step: u64,
    /// The run's number of its first step.
    first_step: u64,
    losses: Vec<LossSum>,
    marked: MarkedPlaces,
    marks: Vec<u32>,
    /// Room for what is read.
    vectors: [Vec<f32>; 3],
}

impl<'a> AloneReplica<'a> {
    pub(super) fn new(
        training: Training,
        feed: Feed,
        sets: &'a Sets,
        objective: Objective,
        setup: ReplicaSetup<'_>,
        beginning: &Snapshot,
        collective: Box<dyn SharingCollective>,
    ) -> Self {
        let planes = setup.optimizer().planes();
        let vector = |is: bool| vec![0.0; if is { beginning.state.len() } else { 0 }];
        Self {
            training,
            feed,
            sets,
            collective,
            objective,
            programs: setup.programs,
            steps_per_epoch: setup.steps_per_epoch,
            epoch: 0,
            step: 0,
            first_step: 0,
            losses: beginning.position.lane_sums.clone(),
            marked: setup.marked,
            marks: Vec::new(),
            vectors: [vector(true), vector(planes > 0), vector(planes > 1)],
        }
    }

    /// What the lanes have come to, once all steps are done.
    fn report(&mut self) -> Result<Vec<LaneReport>, TrainError> {
        let reports = self.training.report()?;
        let diverged = reports.iter().filter_map(|lane| lane.diverged);
        match diverged.min_by_key(|(step, _)| *step) {
            Some((step, loss)) => Err(TrainError::Diverged {
                loss,
                step: step + 1,
                epoch: self.epoch,
            }),
            None => Ok(reports),
        }
    }
}

impl DeviceReplica for AloneReplica<'_> {
    fn collective(&mut self) -> &mut dyn SharingCollective {
        &mut *self.collective
    }

    fn begin_epoch(&mut self, plan: EpochPlan) -> Result<(), TrainError> {
        if plan.done == 0 {
            self.losses.fill(LossSum::default());
        }
        (self.epoch, self.step, self.first_step) = (plan.epoch, plan.done, plan.first_step);
        let (training, sums) = (&mut self.training, &self.losses);
        self.feed.begin_epoch(training, self.sets, &plan, sums)
    }

    fn compute(&mut self) -> Result<(), TrainError> {
        let place = (self.step, self.steps_per_epoch);
        let (training, programs) = (&mut self.training, &self.programs);
        self.feed.send(training, self.sets, programs, place)?;
        Ok(training.queue_step()?)
    }

    fn finish(&mut self, vote: u64) -> Result<u64, TrainError> {
        self.step += 1;
        self.collective.cast(vote)?;
        Ok(self.collective.end_step()?)
    }

    fn mark(&mut self) -> Result<(), TrainError> {
        let loss = self.report()?[0].last;
        self.training.read_values(&mut self.vectors[0])?;
        self.marks.push(MarkedPlaces::of_loss(loss));
        let step = self.first_step + self.step;
        (self.marked).look(step, &self.vectors[0], &mut self.marks);
        Ok(())
    }

    fn take_marks(&mut self) -> Result<Vec<u32>, TrainError> {
        Ok(std::mem::take(&mut self.marks))
    }

    fn epoch_losses(&mut self) -> Result<&mut [LossSum], TrainError> {
        let reports = self.report()?;
        for (sum, report) in self.losses.iter_mut().zip(reports) {
            *sum = report.epoch;
        }
        Ok(&mut self.losses)
    }

    fn take_recent_losses(&mut self, into: &mut [LossSum]) -> Result<(), TrainError> {
        let reports = self.report()?;
        for (sum, report) in into.iter_mut().zip(reports) {
            *sum = report.window;
        }
        Ok(self.training.begin_window()?)
    }

    fn gradient_norm(&mut self) -> Option<f64> {
        None
    }

    fn settle(&mut self) -> Result<(), TrainError> {
        self.report().map(|_| ())
    }

    fn gather_state(&mut self) -> Result<(), TrainError> {
        Ok(self.training.read_values(&mut self.vectors[0])?)
    }

    fn gather_planes(&mut self) -> Result<(), TrainError> {
        for (number, plane) in self.vectors[1..].iter_mut().enumerate() {
            if !plane.is_empty() {
                self.training.read_plane(number, plane)?;
            }
        }
        Ok(())
    }

    fn vectors(&mut self) -> StateVectors<'_> {
        let [values, first, second] = &self.vectors;
        StateVectors {
            values,
            planes: [first, second],
            average: None,
        }
    }

    fn evaluation<'b>(
        &'b mut self,
        weights: Option<&'b [f32]>,
    ) -> Result<(Box<dyn Scorer + 'b>, &'b mut dyn SharingCollective), TrainError> {
        self.training.load(weights)?;
        let scorer = CudaScorer {
            training: &mut self.training,
            objective: self.objective,
        };
        Ok((Box::new(scorer), &mut *self.collective))
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
