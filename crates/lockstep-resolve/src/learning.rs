//! How a network learns.

use crate::training::target_kind;
use crate::{ClassWeights, DecisionRules, RateSchedule};
use lockstep_data::TargetKind;
use lockstep_job::{JobLoss, JobOptimizer, JobPrecision, NetworkTraining};
use lockstep_nn::{Loss, Optimizer, Precision};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a network learns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearningSettings {
    /// Passes over the training set.
    pub epochs: u32,
    /// Samples in an optimizer step, over all workers.
    pub batch: usize,
    /// What the labels must be; if absent, it is what they are found to be.
    pub target: Option<TargetKind>,
    /// What is minimised; if absent, it follows from the labels.
    #[serde(default)]
    pub loss: Option<Loss>,
    /// The part of a target that is spread evenly over all classes.
    pub label_smoothing: f64,
    /// How much each class counts in the loss; if absent, all count alike.
    pub class_weights: Option<ClassWeights>,
    /// Which of two classes is looked for, and when it is predicted.
    #[serde(default)]
    pub decision: DecisionRules,
    /// What turns gradients into new weights.
    pub optimizer: Optimizer,
    /// How the learning rate changes over the run.
    pub schedule: RateSchedule,
    /// Layers that do not learn, by name.
    pub freeze: Vec<String>,
    /// The part of the learning rate that layers learn with, by name.
    pub rates: BTreeMap<String, f64>,
    /// Gradients whose norm is larger are scaled down to it.
    pub clip_norm: Option<f64>,
    /// The share of the running average of the weights that each step keeps; without it, there is no average.
    pub average: Option<f64>,
    /// How products are computed.
    #[serde(default)]
    pub precision: Precision,
    /// Epochs without a better one after which training ends.
    pub patience: Option<u32>,
    /// By how much more than nothing an epoch must be better to count for `patience`.
    pub min_change: f64,
    /// Whether the model is written as ONNX too.
    pub onnx: bool,
}

impl LearningSettings {
    /// What the job says.
    pub fn of(job: &NetworkTraining) -> Self {
        Self {
            epochs: job.epochs,
            batch: job.batch,
            target: job.loss.map(target_kind),
            loss: job.loss.map(|loss| match loss {
                JobLoss::CrossEntropy => Loss::CrossEntropy,
                JobLoss::Mse => Loss::SquaredError,
                JobLoss::Bce => Loss::BinaryCrossEntropy,
                JobLoss::Mae => Loss::AbsoluteError,
                JobLoss::Huber => Loss::Huber {
                    delta: job.huber_delta.unwrap_or(1.0),
                },
                JobLoss::Quantile => Loss::Quantile {
                    share: job.quantile_alpha.unwrap_or(0.5),
                },
                JobLoss::Focal => Loss::Focal {
                    gamma: job.focal_gamma.unwrap_or(2.0),
                },
            }),
            label_smoothing: job.label_smoothing,
            class_weights: job.class_weights.as_ref().map(ClassWeights::of),
            decision: DecisionRules::of(&job.decision),
            optimizer: optimizer(&job.optimizer),
            schedule: RateSchedule::of(&job.schedule, job.optimizer.lr()),
            freeze: job.freeze.clone(),
            rates: job.rates.clone(),
            clip_norm: job.clip_norm,
            average: job.average,
            precision: precision(job.precision),
            patience: job.patience,
            min_change: job.min_change.unwrap_or(0.0),
            onnx: job.onnx,
        }
    }
}

/// How the job's products are computed.
pub fn precision(job: JobPrecision) -> Precision {
    match job {
        JobPrecision::F32 => Precision::F32,
        JobPrecision::Fixed16 => Precision::Fixed16,
    }
}

/// The job's optimizer.
fn optimizer(job: &JobOptimizer) -> Optimizer {
    let adam = |betas: [f64; 2], eps: f64, weight_decay: f64, decoupled| Optimizer::Adam {
        betas: betas.map(|beta| beta as f32),
        epsilon: eps as f32,
        weight_decay: weight_decay as f32,
        decoupled,
    };
    match *job {
        JobOptimizer::Sgd {
            momentum,
            nesterov,
            weight_decay,
            ..
        } => Optimizer::Sgd {
            momentum: momentum as f32,
            nesterov,
            weight_decay: weight_decay as f32,
        },
        JobOptimizer::Adam {
            betas,
            eps,
            weight_decay,
            ..
        } => adam(betas, eps, weight_decay, false),
        JobOptimizer::AdamW {
            betas,
            eps,
            weight_decay,
            ..
        } => adam(betas, eps, weight_decay, true),
        JobOptimizer::RmsProp {
            alpha,
            eps,
            momentum,
            weight_decay,
            ..
        } => Optimizer::RmsProp {
            alpha: alpha as f32,
            epsilon: eps as f32,
            momentum: momentum as f32,
            weight_decay: weight_decay as f32,
        },
        JobOptimizer::Lion {
            betas,
            weight_decay,
            ..
        } => Optimizer::Lion {
            betas: betas.map(|beta| beta as f32),
            weight_decay: weight_decay as f32,
        },
    }
}
