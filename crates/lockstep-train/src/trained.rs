//! A trained model, ready to predict: all that is needed is the `model` folder of its run.

use crate::cuda::GpuScorer;
use crate::device::{Objective, Scorer};
use crate::evaluate::{Evaluator, rows_at_once};
use crate::host::HostScorer;
use crate::{InputElement, SavedModel, TrainError};
use lockstep_cuda::{ModelDescription, Predictor};
use lockstep_data::{Dataset, InputColumn, Normaliser, StoredElement, TargetKind};
use lockstep_learner::{LearnerError, ModelDevice, TrainedModel};
use lockstep_model::{BLOCK_ROWS, Block, Outputs, Predictions, RowOutput};
use lockstep_nn::{Capacity, LayerRates, Model, Threads};
use lockstep_resolve::PictureInput;
use lockstep_runs::RunDir;
use std::ops::Range;

/// A model with the weights that a run ended with.
pub(crate) struct Trained {
    saved: SavedModel,
    network: Network,
    normaliser: Normaliser,
    evaluator: Evaluator,
}

/// What its network is computed on.
enum Network {
    /// The processor.
    Host(Box<Model>),
    /// A GPU.
    Gpu(Box<Predictor>),
}

impl Trained {
    /// Opens the model that a run ended with, to predict on a device.
    ///
    /// # Errors
    /// When the run has no model yet, its files are damaged or do not belong together, or the device cannot be used.
    pub(crate) fn open(run: &RunDir, on: ModelDevice) -> Result<Self, TrainError> {
        let saved = SavedModel::open(run)?;
        let refused = |reason: String| TrainError::Trained {
            path: saved.path.clone(),
            reason,
        };
        let (input, outputs) = (saved.dims(), &saved.outputs);
        let precision = on.precision.unwrap_or(saved.precision);
        let compute =
            Threads::with_threads(on.threads).map_err(|error| refused(error.to_string()))?;
        let rates = LayerRates::default();
        let build = |rows| {
            let (layers, capacity) = (&saved.layers, Capacity { rows, lanes: 1 });
            match Model::in_precision(precision, &rates, &compute, layers, input, capacity) {
                Ok(model) => Ok(model.minimising(saved.loss)),
                Err(error) => Err(refused(error.to_string())),
            }
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
        let evaluator = Evaluator::new(input.len(), rows, outputs.clone());
        let network = match on.choice.open(on.worker)?.gpu {
            None => Network::Host(Box::new(build(rows)?)),
            Some(gpu) => {
                let model = ModelDescription::of(&smallest);
                let predictor = Predictor::new(&gpu, model, &saved.state, rows)?;
                Network::Gpu(Box::new(predictor))
            }
        };
        Ok(Self {
            saved,
            network,
            normaliser,
            evaluator,
        })
    }

    /// Checks that samples of `set` are what the model takes.
    ///
    /// # Errors
    /// When they have another shape, or other things are known of them than the model predicts.
    fn check_set(&self, set: &Dataset) -> Result<(), TrainError> {
        let (kind, own, name) = (self.saved.outputs.kind, set.target_kind(), set.name());
        let (outputs, found) = (self.saved.outputs.names.len(), set.outputs());
        let differs = kind != own || (kind != TargetKind::Classes && found != outputs);
        let reason = match (self.saved.input_shape, set.shape()) {
            _ if set.is_labelled() && differs => {
                format!("it predicts {outputs} {kind}, and {name} has {found} {own}")
            }
            (own, found) if own == found => return Ok(()),
            ([own, 1, 1], [found, 1, 1]) => {
                format!("its samples have {own} numbers each, those of {name} have {found}")
            }
            (own, found) => format!(
                "its samples are {own:?} (channels, height, width), those of {name} are {found:?}"
            ),
        };
        let path = self.saved.path.clone();
        Err(TrainError::Trained { path, reason })
    }
}

impl TrainedModel for Trained {
    fn outputs(&self) -> &Outputs {
        &self.saved.outputs
    }

    fn inputs(&self) -> (&[InputColumn], bool) {
        (&self.saved.inputs, self.normaliser.encoding().is_some())
    }

    fn sample(&self) -> (StoredElement, [usize; 3]) {
        let element = match self.saved.input {
            InputElement::Bytes => StoredElement::U8,
            InputElement::Numbers => StoredElement::F32,
        };
        (element, self.saved.input_shape)
    }

    fn pictures(&self) -> Option<&PictureInput> {
        self.saved.pictures.as_ref()
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
            predictions: Predictions::new(self.saved.outputs.kind, self.saved.model.outputs()),
            losses: Vec::with_capacity(rows.len().div_ceil(BLOCK_ROWS)),
            probabilities: Vec::new(),
        };
        for samples in indices.chunks(BLOCK_ROWS) {
            let Block {
                predictions,
                probabilities,
                ..
            } = &mut block;
            let mut on_host;
            let mut on_gpu;
            let network: &mut dyn Scorer = match &mut self.network {
                Network::Host(model) => {
                    let values = &self.saved.state;
                    on_host = HostScorer { model, values };
                    &mut on_host
                }
                Network::Gpu(predictor) => {
                    let objective = Objective::of(&self.saved.model);
                    on_gpu = GpuScorer {
                        predictor,
                        objective,
                    };
                    &mut on_gpu
                }
            };
            let sum =
                self.evaluator
                    .block(network, (set, samples), &self.normaliser, &mut |said| {
                        predictions.push(said);
                        if let RowOutput::Class(scores, softmax, _) = said
                            && all
                        {
                            let of = |&score: &f32| softmax.probability(score) as f32;
                            probabilities.extend(scores.iter().map(of));
                        }
                    })?;
            block.losses.push(sum.loss.loss);
        }
        self.saved.outputs.decide(&mut block.predictions);
        Ok(block)
    }
}
