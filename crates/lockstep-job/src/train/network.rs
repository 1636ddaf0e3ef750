//! The keys of `[train]` that belong to the learner of networks.

use super::{ClassWeights, JobDecision};
use crate::field::{Field, Rule};
use crate::keys::{Any, By, Each, WordOr, keys, words};
use crate::{JobOptimizer, JobSchedule};
use std::collections::BTreeMap;

keys! {
    /// How a network is trained.
    pub struct NetworkTraining {
        /// Passes over the training set.
        epochs: u32 = default(EPOCHS) => 1..=u32::MAX;
        /// Samples in an optimizer step, over all workers.
        batch: usize = default(BATCH) => 1..=MAX_BATCH;
        /// What is minimised: `"cross-entropy"` or `"focal"` of classes, `"mse"`, `"mae"`, `"huber"` or `"quantile"` of
        /// numbers, or `"bce"` of labels of which a sample may have several. If left out, it follows from the labels.
        loss: Option<JobLoss> = optional => Any;
        /// The error from which on the loss `"huber"` is a straight line, in standard deviations of what is predicted. If
        /// left out, 1.
        huber_delta: Option<f64> = optional => Rule::POSITIVE, |field, delta| {
            of_loss(field, loss, JobLoss::Huber, delta)
        };
        /// The share of all numbers that is below what the loss `"quantile"` predicts, such as 0.9. If left out, 0.5: the
        /// median.
        quantile_alpha: Option<f64> = optional => Rule::BELOW_ONE, |field, share| match share > 0.0 {
            true => of_loss(field, loss, JobLoss::Quantile, share),
            false => field.reject("must be greater than 0", "for example 0.9"),
        };
        /// How much less the loss `"focal"` looks at samples of whose class the network is sure. If left out, 2; 0 is the
        /// cross-entropy.
        focal_gamma: Option<f64> = optional => Rule::NOT_NEGATIVE, |field, gamma| {
            of_loss(field, loss, JobLoss::Focal, gamma)
        };
        /// The part of a target that is spread evenly over all classes, so that the network does not become too sure.
        /// For classes only.
        #[serde(default)]
        label_smoothing: f64 = hidden(0.0) => Rule::BELOW_ONE;
        /// How much each class counts in the loss: `"balanced"`, as if all had as many training samples, or a number for
        /// each, in their order. For classes only.
        class_weights: Option<ClassWeights> = optional => Any;
        /// Which of two classes is looked for, and when it is predicted.
        #[serde(flatten)]
        decision: JobDecision = flat(JobDecision::read_keys) => Any;
        /// What turns gradients into new weights. The kind alone may be written as a word: `"adamw"`.
        optimizer: JobOptimizer as WordOr<JobOptimizer> = default(JobOptimizer::default())
            => Any, |field, ()| JobOptimizer::read(field.section()?);
        /// How the learning rate changes over the run. The kind alone may be written as a word: `"cosine"`.
        schedule: JobSchedule as WordOr<JobSchedule> = default(JobSchedule::default()) => Any, |field, ()| {
            let lr = optimizer.as_ref().map(JobOptimizer::lr);
            JobSchedule::read(field.section()?, lr)
        };
        /// Layers that do not learn, by name: `["conv1", "layer1"]`. A name stands for a layer, or for all whose names go
        /// on behind it with a dot.
        #[serde(default)]
        freeze: Vec<String> = hidden(Vec::<String>::new()) => Each(Any);
        /// The part of the learning rate that layers learn with, by name: `{ layer4 = 0.1 }`. The longest name that stands
        /// for a layer counts.
        #[serde(default)]
        rates: BTreeMap<String, f64> = hidden(BTreeMap::<String, f64>::new()) => By(parts);
        /// Gradients whose norm is larger are scaled down to it.
        clip_norm: Option<f64> = optional => Rule::POSITIVE;
        /// Keep a running average of the weights, of which each step keeps this share (EMA); it is what is measured and
        /// what becomes the model. If left out, the weights themselves are.
        average: Option<f64> = optional => Rule::BELOW_ONE, |field, share| match share > 0.0 {
            true => Some(share),
            false => field.reject("must be greater than 0", "for example 0.999"),
        };
        /// How products are computed: `"f32"`, or `"fixed16"`, which is faster on processors with AMX and on GPUs and has
        /// the same bits on all. It changes the weights.
        #[serde(default)]
        precision: JobPrecision = hidden(JobPrecision::default()) => Any;
        /// End after so many epochs without a better value of `checkpoint.best` on validation data. The best epoch's
        /// weights are kept, as always. If left out, all epochs are trained.
        patience: Option<u32> = optional => 1..=u32::MAX;
        /// By how much more than nothing that value must get better to count for `patience`.
        min_change: Option<f64> = optional => Rule::NOT_NEGATIVE, |field, change| match patience {
            Some(None) => field.reject(
                "says what counts for `train.patience`, which is not set",
                "add `patience = 5`, or leave this out",
            ),
            _ => Some(change),
        };
        /// At the end, write the model also as ONNX, for other programs: `model/model.onnx` in the run's folder.
        onnx: bool = default(false) => Any;
    }
}

words! {
    /// How the products of a network are computed.
    pub enum JobPrecision {
        /// In single precision.
        "f32" F32
        /// In 16-bit fixed point, with exact sums.
        "fixed16" Fixed16
    }
}

/// That of jobs that do not say it.
impl Default for JobPrecision {
    fn default() -> Self {
        Self::F32
    }
}

words! {
    /// What is minimised.
    pub enum JobLoss {
        /// Of classes, of which a sample has one.
        "cross-entropy" CrossEntropy
        /// The mean squared error of one or several numbers.
        "mse" Mse
        /// The binary cross-entropy of labels, of which a sample may have several.
        "bce" Bce
        /// The mean absolute error of numbers.
        "mae" Mae
        /// Half the squared error of numbers up to `huber_delta`, a straight line beyond.
        "huber" Huber
        /// The pinball loss of numbers, whose best prediction is a quantile.
        "quantile" Quantile
        /// The cross-entropy of classes, which counts less the surer the network is of the right one.
        "focal" Focal
    }
}

/// A value that only one loss has.
fn of_loss<T>(
    field: &Field<'_>,
    said: Option<Option<JobLoss>>,
    own: JobLoss,
    value: T,
) -> Option<T> {
    match said {
        Some(said) if said != Some(own) => field.reject(
            format!("is for the loss \"{}\"", own.word()),
            format!("add `loss = \"{}\"`, or leave this out", own.word()),
        ),
        _ => Some(value),
    }
}

/// Numbers above 0 by name.
fn parts(field: &Field<'_>) -> Option<BTreeMap<String, f64>> {
    let expected = "a table such as { layer4 = 0.1 }";
    field.map(expected, |_, field| field.number(&Rule::POSITIVE))
}

/// Samples, far beyond what a step takes, so that sizes made from it cannot overflow.
const MAX_BATCH: usize = 1 << 24;
/// Enough for a table of some hundred rows; who has many more sees how it goes, and sets fewer.
const EPOCHS: u32 = 100;
/// Small enough that a few hundred rows are many steps.
const BATCH: usize = 32;
