//! The job as the rest of the program sees it: checked, complete, plain data.
//!
//! A [`Job`] that came out of [`Job::load`] has passed every check that needs no data: all defaults
//! are filled in, `lanes` is fixed and paths are absolute. Its serde form is the job file's own
//! vocabulary, so what travels to workers as JSON, what `lockstep job show` prints and what a run's
//! folder keeps are the same words that the user wrote.

use crate::{Data, Gang, Model, Run, Train};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to train, on which data, how, and where the result goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Name of the job; each of its runs is named after it. Letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// What to learn from.
    pub data: Data,
    /// The network.
    pub model: Model,
    /// How to train it.
    pub train: Train,
    /// Where the run goes.
    #[serde(default)]
    pub run: Run,
    /// How the workers talk to each other.
    #[serde(default)]
    pub gang: Gang,
}
