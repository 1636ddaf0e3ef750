//! The learners that a program has.

use crate::{Learner, LearnerError, LearnerFailure, ModelDevice, TrainedModel};
use lockstep_events::control::Assignment;
use lockstep_runs::RunDir;

/// A kind of learner, whatever job it is for.
pub trait LearnerType: Sync {
    /// What it is called in assignments.
    fn kind(&self) -> &'static str;

    /// Opens the learner that an assignment is for, in a worker's process. It outlives the generation that it is opened for.
    ///
    /// # Errors
    /// When what it needs cannot be used.
    fn open(&self, assignment: &Assignment) -> Result<Box<dyn Learner>, LearnerFailure>;

    /// What of a machine it needs.
    fn needs(&self) -> LearnerNeeds {
        LearnerNeeds::default()
    }

    /// Whether its models predict without it: they are opened and recovered from a run's folder alone.
    fn predicts(&self) -> bool {
        true
    }

    /// Opens the model that a run ended with, to predict on a device; nothing if it is another learner's.
    ///
    /// # Errors
    /// When the run has no model yet, its files are damaged or do not belong together, or the device cannot be used.
    fn open_model(
        &self,
        _run: &RunDir,
        _on: ModelDevice,
    ) -> Result<Option<Box<dyn TrainedModel>>, LearnerError> {
        Ok(None)
    }

    /// Writes the model of a run that did not end from its newest whole checkpoint. Says in words what that is; nothing
    /// if there is none.
    ///
    /// # Errors
    /// When the checkpoint cannot be read, or the model cannot be written.
    fn recover_model(&self, _run: &RunDir) -> Result<Option<String>, LearnerError> {
        Ok(None)
    }
}

/// What of a machine a learner needs, for whoever looks for what is wrong with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LearnerNeeds {
    /// A program or library of others: `python` or `xgboost`.
    pub program: Option<&'static str>,
    /// Whether its data can be opened without anything else being there.
    pub opens_data: bool,
}

/// All learners that a program has, each under a name of its own. Those that recognise their models come first.
#[derive(Clone, Copy)]
pub struct Learners(pub &'static [&'static dyn LearnerType]);

impl Learners {
    /// The learner of this name.
    pub fn of_kind(&self, kind: &str) -> Option<&'static dyn LearnerType> {
        self.0
            .iter()
            .copied()
            .find(|learner| learner.kind() == kind)
    }

    /// Opens the learner that an assignment is for.
    ///
    /// # Errors
    /// When there is no such learner, or what it needs cannot be used.
    pub fn open(&self, assignment: &Assignment) -> Result<Box<dyn Learner>, LearnerFailure> {
        match self.of_kind(&assignment.kind) {
            Some(learner) => learner.open(assignment),
            None => Err(LearnerFailure::new(format!(
                "this program has no learner called `{}`",
                assignment.kind
            ))),
        }
    }

    /// Opens the model that a run ended with, to predict on a device.
    ///
    /// # Errors
    /// When the run has no model that any learner knows, its files are damaged or do not belong together, or the device
    /// cannot be used.
    pub fn open_model(
        &self,
        run: &RunDir,
        on: ModelDevice,
    ) -> Result<Box<dyn TrainedModel>, LearnerError> {
        for learner in self.0 {
            if let Some(model) = learner.open_model(run, on)? {
                return Ok(model);
            }
        }
        Err(LearnerError::Job(
            format!("no learner of this program knows the model of {}", run.name).into(),
        ))
    }
}
