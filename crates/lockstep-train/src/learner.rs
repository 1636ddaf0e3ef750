//! The trainer of networks as a learner.

use crate::TrainError;
use crate::sets::FoundSets;
use crate::trainer::{Opened, Trainer};
use lockstep_base::fs::CacheDir;
use lockstep_events::control::{Assignment, FromWorker};
use lockstep_learner::{Gang, GenerationEnd, Learner, LearnerFailure, Reporter};
use lockstep_place::Access;
use lockstep_resolve::{SetSources, TrainingSettings};
use serde::{Deserialize, Serialize};

/// What the trainer of networks is told in [`Assignment::learner`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LearnerPart {
    /// How to train.
    pub settings: TrainingSettings,
    /// Where the sets come from, for a host that has not decoded them.
    pub sources: SetSources,
    /// How the run's places are reached.
    pub access: Access,
    /// SHA-256 of the file of weights to begin with, as it was when the job was checked.
    pub pretrained: Option<String>,
    /// Where the sets were found when the job was prepared.
    pub found: FoundSets,
}

impl LearnerPart {
    /// Reads the learner's part of an assignment.
    fn of(assignment: &Assignment) -> Result<Self, TrainError> {
        serde_json::from_value(assignment.learner.clone()).map_err(TrainError::Assignment)
    }
}

/// Opens the trainer of the network that an assignment is for: its data and its model.
///
/// # Errors
/// When the data or the model cannot be used.
pub(crate) fn open(assignment: &Assignment) -> Result<Box<dyn Learner>, LearnerFailure> {
    let open = || {
        let part = LearnerPart::of(assignment)?;
        Opened::open(&part, assignment.rank, &CacheDir::locate()?)
    };
    match open() {
        Ok(opened) => Ok(Box::new(Training { opened })),
        Err(error) => Err(failure(error, 0)),
    }
}

/// Trains a network. Its data and its model are kept from one generation to the next.
struct Training {
    opened: Opened,
}

impl Learner for Training {
    fn train(
        &mut self,
        gang: &Gang<'_>,
        reporter: &mut Reporter,
    ) -> Result<GenerationEnd, LearnerFailure> {
        let assignment = gang.assignment();
        if let Some(note) = self.opened.take_note() {
            reporter.warnings()(note);
        }
        let join = |plan| Ok(gang.join(plan)?);
        // The number of workers may have changed since the generation before.
        let part = LearnerPart::of(assignment).map_err(|error| failure(error, 0))?;
        let end = Trainer::new(assignment, &part, &mut self.opened, join)
            .map_err(|error| failure(error, 0))
            .and_then(|mut trainer| {
                let end = trainer.train(&|| gang.wish(), reporter);
                end.map_err(|error| failure(error, trainer.steps()))
            });
        self.tell_held(reporter)?;
        end
    }
}

impl Training {
    /// Tells the coordinator what this process holds of the state, if it holds anything: the next generation may begin
    /// with that.
    fn tell_held(&self, reporter: &mut Reporter) -> Result<(), LearnerFailure> {
        let shares = self.opened.held_shares();
        if shares.is_empty() {
            return Ok(());
        }
        let shares = serde_json::to_value(shares).expect("stamps are plain data");
        Ok(reporter.send(&FromWorker::Held { shares })?)
    }
}

/// What an error after so many steps means to the gang.
fn failure(error: TrainError, step: u64) -> LearnerFailure {
    LearnerFailure {
        peer_lost: error.is_peer_lost(),
        again: false,
        ends_process: matches!(&error, TrainError::Cuda(error) if error.is_of_process()),
        waiting_for: error.waiting_for(),
        step,
        error: error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_cuda::CudaError;

    #[test]
    fn a_gpu_that_fails_ends_the_process_and_one_that_is_too_small_ends_the_run() {
        let failed = |error: CudaError| failure(error.into(), 7).ends_process;
        assert!(failed(CudaError::Lost {
            index: 0,
            name: "a GPU".to_owned(),
            seconds: 600,
        }));
        assert!(!failed(CudaError::OutOfMemory {
            device: "a GPU".to_owned(),
            what: "a network".to_owned(),
            asked: 2,
            free: 1,
            total: 1,
        }));
    }
}
