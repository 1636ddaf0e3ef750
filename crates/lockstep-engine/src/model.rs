//! The model that a run ended with, whatever it is: a network, or trees.

use crate::EngineError;
use lockstep_data::{Dataset, InputColumn};
use lockstep_learner::LearnerError;
use lockstep_resolve::PictureInput;
use lockstep_runs::RunDir;
use lockstep_train::{Block, Outputs, Trained};
use lockstep_trees::TrainedTrees;
use std::ops::Range;

/// A model that is ready to predict.
pub enum TrainedModel {
    /// A network.
    Network(Box<Trained>),
    /// Trees.
    Trees(Box<TrainedTrees>),
}

impl TrainedModel {
    /// Opens the model that a run ended with, to predict with so many threads.
    ///
    /// # Errors
    /// When the run has no model yet, or its files are damaged or do not belong together.
    pub fn open(run: &RunDir, threads: usize) -> Result<Self, EngineError> {
        let of_trees = lockstep_trees::is_of_trees(run).map_err(LearnerError::from)?;
        Ok(match of_trees {
            true => {
                let trees = TrainedTrees::open(run, threads).map_err(LearnerError::from)?;
                Self::Trees(Box::new(trees))
            }
            false => {
                let network = Trained::open(run, threads).map_err(LearnerError::from)?;
                Self::Network(Box::new(network))
            }
        })
    }

    /// What the model predicts.
    pub fn outputs(&self) -> &Outputs {
        match self {
            Self::Network(model) => model.outputs(),
            Self::Trees(model) => model.outputs(),
        }
    }

    /// The columns of the table that it was trained on, in their order, none if it was no table; and whether values may be
    /// missing from them.
    pub fn inputs(&self) -> (&[InputColumn], bool) {
        match self {
            Self::Network(model) => model.inputs(),
            Self::Trees(model) => (model.inputs(), true),
        }
    }

    /// How pictures become samples; nothing if the samples are none, or that is not known.
    pub fn pictures(&self) -> Option<&PictureInput> {
        match self {
            Self::Network(model) => model.pictures(),
            Self::Trees(_) => None,
        }
    }

    /// Checks that samples of `set` are what the model takes.
    ///
    /// # Errors
    /// When they have another shape, or other things are known of them than the model predicts.
    pub fn check(&self, set: &Dataset) -> Result<(), EngineError> {
        match self {
            Self::Network(model) => Ok(model.check(set).map_err(LearnerError::from)?),
            Self::Trees(model) => Ok(model.check(set).map_err(LearnerError::from)?),
        }
    }

    /// What the model says of some samples of `set`, the first of which is the first of a block. With `all`, the
    /// probabilities of all classes too.
    ///
    /// # Errors
    /// When XGBoost refuses; a network always has an answer.
    pub fn predict(
        &mut self,
        set: &Dataset,
        rows: Range<usize>,
        all: bool,
    ) -> Result<Block, EngineError> {
        match self {
            Self::Network(model) => Ok(model.predict(set, rows, all)),
            Self::Trees(model) => Ok(model.predict(set, rows, all).map_err(LearnerError::from)?),
        }
    }
}
