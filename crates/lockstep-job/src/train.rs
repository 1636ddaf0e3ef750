//! `[train]`: how the network is trained.

use crate::{Optimizer, Schedule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the network is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Train {
    /// Passes over the training set.
    pub epochs: u32,
    /// Samples in an optimizer step, over all workers.
    pub batch: usize,
    /// What turns gradients into new weights.
    pub optimizer: Optimizer,
    /// How the learning rate changes over the run.
    #[serde(default)]
    pub schedule: Schedule,
    /// Gradients whose norm is larger are scaled down to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip_norm: Option<f64>,
    /// Worker processes. Any number up to `lanes` gives the same weights.
    #[serde(default = "one")]
    pub workers: usize,
    /// The parts that a batch is cut into: the unit of arithmetic, fixed for the run's life. If left
    /// out, the job file's `workers`.
    #[schemars(with = "Option<usize>")]
    pub lanes: usize,
    /// Threads of a worker.
    #[serde(default = "one")]
    pub threads: usize,
    /// Where all random numbers of the run come from.
    #[serde(default)]
    pub seed: u64,
}

pub(crate) fn one() -> usize {
    1
}
