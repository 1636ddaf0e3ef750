//! `model.json`: all that one must know to use the weights beside it.
//!
//! It is written with them at the end of a run, and checkpoints carry it too: so there is a model to be had of a run that
//! was killed.

use crate::InputElement;
use crate::saved;
use crate::sets::Sets;
use crate::targets;
use lockstep_data::{Encoding, InputColumn, Normalisation, TargetKind, TargetScale};
use lockstep_model::{Decision, Outputs};
use lockstep_nn::{Dims, Loss, Precision};
use lockstep_resolve::{LayerWords, NetworkPlan, PictureInput, TrainingSettings};
use serde::{Deserialize, Serialize};

/// The format of `model.json`. It grows when a key changes its meaning or goes.
pub(crate) const VERSION: u32 = 1;

/// What the weights are of; `model.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Card {
    /// Format of this file.
    pub(crate) version: u32,
    /// Channels, height, width.
    pub(crate) input_shape: [usize; 3],
    /// What the samples are: bytes, or numbers.
    input: Option<InputElement>,
    /// The columns of the table that the input comes from, in their order; absent if it was no table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) column_names: Vec<String>,
    /// What the columns of the table hold, where they are not just numbers without gaps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) inputs: Vec<InputColumn>,
    /// A row of the table, cell by cell, for people who want to see what goes in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    example: Vec<serde_json::Value>,
    /// How a row of the table becomes the network's input; absent if it is that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) encoding: Option<Encoding>,
    /// How pictures become samples; absent if the samples are no pictures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pictures: Option<PictureInput>,
    /// How bytes become inputs; null if they are only scaled to 0..1.
    pub(crate) normalise: Option<Normalisation>,
    /// Class names by number: the label map. Empty if other things are predicted.
    pub(crate) classes: Vec<String>,
    /// Of two classes, the one that is looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    positive: Option<String>,
    /// The probability from which on it is predicted; absent if the more probable class is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    threshold: Option<f64>,
    /// What is predicted instead of classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    targets: Option<TargetCard>,
    /// The network, as in the job file.
    pub(crate) network: NetworkPlan,
    /// Its layers in order, as in the job file; absent for a network known by its name alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    layers: Option<LayerWords>,
    /// How its products were computed in training; absent if in single precision.
    #[serde(default, skip_serializing_if = "is_f32")]
    pub(crate) precision: Precision,
    /// SHA-256 of all tensors' numbers: see [`sha256`](crate::weights::sha256). Empty in a checkpoint.
    pub(crate) weights_sha256: String,
}

fn is_f32(precision: &Precision) -> bool {
    *precision == Precision::F32
}

/// What a model predicts that does not predict classes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct TargetCard {
    /// What was minimised.
    loss: CardLoss,
    /// The error from which on Huber's loss is a straight line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    huber_delta: Option<f64>,
    /// The share of all numbers that is below a predicted quantile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quantile_alpha: Option<f64>,
    /// What the outputs are called, in their order.
    columns: Vec<String>,
    /// What is predicted is the output times `std` plus `mean`; of labels, the output is the logit.
    mean: Vec<f32>,
    std: Vec<f32>,
}

/// What was minimised, as `model.json` calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum CardLoss {
    CrossEntropy,
    Mse,
    Bce,
    Mae,
    Huber,
    Quantile,
}

impl TargetCard {
    fn of(settings: &TrainingSettings, sets: &Sets) -> Option<Self> {
        let said = settings.learner.loss;
        let (mut huber_delta, mut quantile_alpha) = (None, None);
        let loss = match said.unwrap_or(targets::loss(sets.train.target_kind())) {
            Loss::CrossEntropy | Loss::Focal { .. } => return None,
            Loss::SquaredError => CardLoss::Mse,
            Loss::BinaryCrossEntropy => CardLoss::Bce,
            Loss::AbsoluteError => CardLoss::Mae,
            Loss::Huber { delta } => {
                huber_delta = Some(delta);
                CardLoss::Huber
            }
            Loss::Quantile { share } => {
                quantile_alpha = Some(share);
                CardLoss::Quantile
            }
        };
        Some(Self {
            loss,
            huber_delta,
            quantile_alpha,
            columns: sets.train.output_names().to_vec(),
            mean: sets.scale.mean().to_vec(),
            std: sets.scale.std().to_vec(),
        })
    }
}

impl Card {
    /// Of the model that `settings` describe for these sets, without the hash of its weights.
    pub(crate) fn new(settings: &TrainingSettings, sets: &Sets) -> Self {
        Self {
            version: VERSION,
            input_shape: sets.train.shape(),
            input: Some(sets.train.element().into()),
            column_names: sets.train.columns().to_vec(),
            inputs: match sets.train.table().is_plain() {
                true => Vec::new(),
                false => sets.train.table().inputs(),
            },
            example: sets.train.example_row(),
            encoding: sets.normaliser.encoding().cloned(),
            pictures: settings.pictures.clone(),
            normalise: settings.normalise.clone(),
            classes: sets.train.class_names().to_vec(),
            positive: None,
            threshold: None,
            targets: TargetCard::of(settings, sets),
            network: settings.network.clone(),
            layers: settings.network.as_stack(),
            precision: settings.learner.precision,
            weights_sha256: String::new(),
        }
        .deciding(sets.decision)
    }

    /// The same of a model that decides in this way.
    pub(crate) fn deciding(self, decision: Option<Decision>) -> Self {
        Self {
            positive: decision.map(|decision| self.classes[decision.positive].clone()),
            threshold: decision.and_then(|decision| decision.threshold),
            ..self
        }
    }

    /// The same, of weights with this hash.
    pub(crate) fn with_weights(self, sha256: &str) -> Self {
        Self {
            weights_sha256: sha256.to_owned(),
            ..self
        }
    }

    /// Whether the model predicts classes.
    pub(crate) fn is_of_classes(&self) -> bool {
        self.targets.is_none()
    }

    /// What the model predicts; `None` if that does not fit itself.
    pub(crate) fn outputs(&self) -> Option<Outputs> {
        let Some(targets) = &self.targets else {
            return Some(Outputs {
                kind: TargetKind::Classes,
                names: self.classes.clone(),
                scale: TargetScale::identity(self.classes.len()),
                decision: Decision::named(&self.classes, self.positive.as_deref(), self.threshold),
            });
        };
        let scale = TargetScale::new(targets.mean.clone(), targets.std.clone())?;
        let fits = !targets.columns.is_empty() && scale.mean().len() == targets.columns.len();
        fits.then(|| Outputs {
            kind: match targets.loss {
                CardLoss::CrossEntropy => TargetKind::Classes,
                CardLoss::Mse | CardLoss::Mae | CardLoss::Huber | CardLoss::Quantile => {
                    TargetKind::Numbers
                }
                CardLoss::Bce => TargetKind::Labels,
            },
            names: targets.columns.clone(),
            scale,
            decision: None,
        })
    }

    /// What the model is measured by: what was minimised, and of classes the plain cross-entropy.
    pub(crate) fn loss(&self) -> Loss {
        let Some(targets) = &self.targets else {
            return Loss::CrossEntropy;
        };
        match targets.loss {
            CardLoss::CrossEntropy => Loss::CrossEntropy,
            CardLoss::Mse => Loss::SquaredError,
            CardLoss::Bce => Loss::BinaryCrossEntropy,
            CardLoss::Mae => Loss::AbsoluteError,
            CardLoss::Huber => Loss::Huber {
                delta: targets.huber_delta.unwrap_or(1.0),
            },
            CardLoss::Quantile => Loss::Quantile {
                share: targets.quantile_alpha.unwrap_or(0.5),
            },
        }
    }

    /// What the samples are. Runs that do not say it learned from vectors of numbers, or from pictures.
    pub(crate) fn input(&self) -> InputElement {
        self.input.unwrap_or(match self.input_shape {
            [_, 1, 1] => InputElement::Numbers,
            _ => InputElement::Bytes,
        })
    }

    /// The shape of the network's input.
    pub(crate) fn dims(&self) -> Dims {
        saved::dims(self.input_shape, self.encoding.as_ref())
    }
}
