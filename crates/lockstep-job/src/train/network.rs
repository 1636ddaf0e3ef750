//! The keys of `[train]` that belong to the learner of networks.

use crate::field::Rule;
use crate::keys::{Any, keys, words};
use crate::{JobOptimizer, JobSchedule};

keys! {
    /// How a network is trained.
    pub struct NetworkTraining {
        /// Passes over the training set.
        epochs: u32 = need("add `epochs = 10`") => 1..=u32::MAX;
        /// Samples in an optimizer step, over all workers.
        batch: usize = need("add `batch = 32`") => 1..=MAX_BATCH;
        /// What is minimised: `"cross-entropy"` of classes, `"mse"` of numbers, or `"bce"` of labels of which a
        /// sample may have several. If left out, it follows from the labels.
        loss: Option<JobLoss> = optional => Any;
        /// What turns gradients into new weights.
        optimizer: JobOptimizer = need("add `optimizer = { kind = \"sgd\", lr = 1e-3 }`")
            => Any, |field, ()| JobOptimizer::read(field.section()?);
        /// How the learning rate changes over the run.
        schedule: JobSchedule = default(JobSchedule::default()) => Any, |field, ()| {
            let lr = optimizer.as_ref().map(JobOptimizer::lr);
            JobSchedule::read(field.section()?, lr)
        };
        /// Gradients whose norm is larger are scaled down to it.
        clip_norm: Option<f64> = optional => Rule::POSITIVE;
        /// At the end, write the model also as ONNX, for other programs: `model/model.onnx` in the run's folder.
        onnx: bool = default(false) => Any;
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
    }
}

/// Samples, far beyond what a step takes, so that sizes made from it cannot overflow.
const MAX_BATCH: usize = 1 << 24;
