//! The model that a run ended with, whatever learned it.

use crate::LearnerError;
use lockstep_cuda::DeviceChoice;
use lockstep_data::{Dataset, InputColumn, StoredElement};
use lockstep_model::{Block, Outputs};
use lockstep_resolve::{PictureInput, Precision};
use std::ops::Range;

/// What a model computes on. Every device says the same of a sample, to the bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelDevice {
    /// Threads of the processor.
    pub threads: usize,
    /// What its network is computed on, where it is one.
    pub choice: DeviceChoice,
    /// How precisely, if not as it was trained.
    pub precision: Option<Precision>,
    /// Which of the workers this is, of those that share the GPUs of a machine.
    pub worker: usize,
}

impl ModelDevice {
    /// The processor, with so many threads.
    pub fn processor(threads: usize) -> Self {
        Self {
            threads,
            choice: DeviceChoice::Cpu,
            precision: None,
            worker: 0,
        }
    }
}

/// A model that is ready to predict.
pub trait TrainedModel {
    /// What the model predicts.
    fn outputs(&self) -> &Outputs;

    /// The columns of the table that it was trained on, in their order, none if it was no table; and whether values may be
    /// missing from them.
    fn inputs(&self) -> (&[InputColumn], bool);

    /// How samples are stored, and their shape: channels, height, width.
    fn sample(&self) -> (StoredElement, [usize; 3]);

    /// How pictures become samples; nothing if the samples are none, or that is not known.
    fn pictures(&self) -> Option<&PictureInput> {
        None
    }

    /// Checks that samples of `set` are what the model takes.
    ///
    /// # Errors
    /// When they have another shape, or other things are known of them than the model predicts.
    fn check(&self, set: &Dataset) -> Result<(), LearnerError>;

    /// What the model says of some samples of `set`, the first of which is the first of a block. With `all`, the
    /// probabilities of all classes too.
    ///
    /// # Errors
    /// When a library of others refuses.
    fn predict(
        &mut self,
        set: &Dataset,
        rows: Range<usize>,
        all: bool,
    ) -> Result<Block, LearnerError>;

    /// What [contributions](TrainedModel::contributions) are of, in their order: of each output, every number of a row,
    /// and what is said without any. Nothing if the model cannot be asked for them.
    fn contribution_names(&self) -> Option<Vec<String>> {
        None
    }

    /// How far each number of some samples of `set` moves what the model says of them (SHAP values), sample by sample.
    ///
    /// # Errors
    /// When a library of others refuses.
    fn contributions(
        &mut self,
        _set: &Dataset,
        _rows: Range<usize>,
    ) -> Result<Vec<f32>, LearnerError> {
        Ok(Vec::new())
    }
}
