//! A trained model, ready to predict: all that is needed is the `model` folder of its run.

use crate::evaluate::{Evaluator, rows_at_once};
use crate::targets::loss;
use crate::{SavedModel, TrainError};
use lockstep_data::{Dataset, InputColumn, Normaliser, TargetKind};
use lockstep_learner::{LearnerError, TrainedModel};
use lockstep_model::{BLOCK_ROWS, Block, Outputs, Predictions, RowOutput};
use lockstep_nn::{Model, Threads};
use lockstep_resolve::PictureInput;
use lockstep_runs::RunDir;
use std::ops::Range;
use std::path::PathBuf;

/// A model with the weights that a run ended with.
pub(crate) struct Trained {
    path: PathBuf,
    model: Model,
    state: Vec<f32>,
    outputs: Outputs,
    inputs: Vec<InputColumn>,
    pictures: Option<PictureInput>,
    input_shape: [usize; 3],
    normaliser: Normaliser,
    evaluator: Evaluator,
}

impl Trained {
    /// Opens the model that a run ended with, to predict with so many threads.
    ///
    /// # Errors
    /// When the run has no model yet, or its files are damaged or do not belong together.
    pub(crate) fn open(run: &RunDir, threads: usize) -> Result<Self, TrainError> {
        let saved = SavedModel::open(run)?;
        let refused = |reason: String| TrainError::Trained {
            path: saved.path.clone(),
            reason,
        };
        let (input, outputs) = (saved.dims(), &saved.outputs);
        let compute = Threads::with_threads(threads).map_err(|error| refused(error.to_string()))?;
        let build = |rows| match Model::on(&compute, &saved.layers, input, rows) {
            Ok(model) => Ok(model.minimising(loss(outputs.kind))),
            Err(error) => Err(refused(error.to_string())),
        };
        let smallest = build(1)?;
        let first = smallest.workspace_bytes();
        let row = build(2)?.workspace_bytes().saturating_sub(first);
        let rows = rows_at_once(1, row);
        let channels = saved.input_shape[0];
        let normaliser = match &saved.encoding {
            Some(encoding) => Normaliser::encoded(channels, encoding.clone()),
            None => Normaliser::of(saved.normalise.as_ref(), channels)?,
        };
        Ok(Self {
            model: build(rows)?,
            evaluator: Evaluator::new(input.len(), rows, outputs.clone()),
            normaliser,
            state: saved.state,
            outputs: saved.outputs,
            inputs: saved.inputs,
            pictures: saved.pictures,
            input_shape: saved.input_shape,
            path: saved.path,
        })
    }

    /// Checks that samples of `set` are what the model takes.
    ///
    /// # Errors
    /// When they have another shape, or other things are known of them than the model predicts.
    fn check_set(&self, set: &Dataset) -> Result<(), TrainError> {
        let (kind, own) = (self.outputs.kind, set.target_kind());
        let known = set.is_labelled();
        let differs = kind != own
            || (kind != TargetKind::Classes && set.outputs() != self.outputs.names.len());
        if known && differs {
            return Err(TrainError::Trained {
                path: self.path.clone(),
                reason: format!(
                    "it predicts {} {kind}, and {} has {} {own}",
                    self.outputs.names.len(),
                    set.name(),
                    set.outputs()
                ),
            });
        }
        if set.shape() == self.input_shape {
            return Ok(());
        }
        if let ([own, 1, 1], [found, 1, 1]) = (self.input_shape, set.shape()) {
            return Err(TrainError::Trained {
                path: self.path.clone(),
                reason: format!(
                    "its samples have {own} numbers each, those of {} have {found}",
                    set.name()
                ),
            });
        }
        Err(TrainError::Trained {
            path: self.path.clone(),
            reason: format!(
                "its samples are {:?} (channels, height, width), those of {} are {:?}",
                self.input_shape,
                set.name(),
                set.shape()
            ),
        })
    }
}

impl TrainedModel for Trained {
    fn outputs(&self) -> &Outputs {
        &self.outputs
    }

    fn inputs(&self) -> (&[InputColumn], bool) {
        (&self.inputs, self.normaliser.encoding().is_some())
    }

    fn pictures(&self) -> Option<&PictureInput> {
        self.pictures.as_ref()
    }

    fn check(&self, set: &Dataset) -> Result<(), LearnerError> {
        Ok(self.check_set(set)?)
    }

    /// # Panics
    /// When the set's samples are of another shape, or the range is none of its.
    fn predict(
        &mut self,
        set: &Dataset,
        rows: Range<usize>,
        all: bool,
    ) -> Result<Block, LearnerError> {
        assert!(rows.start.is_multiple_of(BLOCK_ROWS), "whole blocks");
        let indices: Vec<u32> = rows.clone().map(|row| row as u32).collect();
        let mut block = Block {
            first: rows.start,
            predictions: Predictions::new(self.outputs.kind, self.model.outputs()),
            losses: Vec::with_capacity(rows.len().div_ceil(BLOCK_ROWS)),
            probabilities: Vec::new(),
        };
        for samples in indices.chunks(BLOCK_ROWS) {
            let Block {
                predictions,
                probabilities,
                ..
            } = &mut block;
            let sum = self.evaluator.block(
                &mut self.model,
                &self.state,
                (set, samples),
                &self.normaliser,
                &mut |said| {
                    predictions.push(said);
                    if let RowOutput::Class(scores, softmax, _) = said
                        && all
                    {
                        let of = |&score: &f32| softmax.probability(score) as f32;
                        probabilities.extend(scores.iter().map(of));
                    }
                },
            );
            block.losses.push(sum.loss.loss);
        }
        Ok(block)
    }
}
