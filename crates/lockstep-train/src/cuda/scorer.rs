//! A trained network on a GPU that is asked.

use crate::TrainError;
use crate::device::{Objective, Scorer};
use lockstep_cuda::Predictor;

/// A network that only says something of rows.
pub(crate) struct GpuScorer<'a> {
    pub(crate) predictor: &'a mut Predictor,
    pub(crate) objective: Objective,
}

impl Scorer for GpuScorer<'_> {
    fn objective(&self) -> Objective {
        self.objective
    }

    fn scores(&mut self, inputs: &[f32]) -> Result<&[f32], TrainError> {
        Ok(self.predictor.scores(inputs)?)
    }
}
