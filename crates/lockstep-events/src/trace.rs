//! Marks of a run's parameters, step by step, so that a later run of the same job can be held against it.
//!
//! The same job comes to the same bits, so a mark need not say much: a few numbers of every tensor, taken at
//! places that change from step to step, and the loss of a lane. Two runs whose marks agree at every step have,
//! for all that can be expected, agreed in every number; whole hashes at the ends of epochs make sure of it.
//! A step that is trained again after a failure is marked again, with the same mark.

use serde::{Deserialize, Serialize};

/// The marks of some steps in a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceMarks {
    /// The first of the steps, counted from 1.
    pub step: u64,
    /// Steps from one mark to the next.
    pub every: u64,
    /// For each step the mark of its loss, then those of all tensors: eight hexadecimal digits each.
    pub marks: String,
}

/// One line of a run's `trace.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TraceLine {
    /// What the marks are of; comes first, and again when a run is gone on with.
    Tensors {
        /// The names of all tensors, in the order of their marks.
        tensors: Vec<String>,
    },
    /// Some steps.
    Marks(TraceMarks),
    /// The end of an epoch.
    Whole {
        /// Steps that were done.
        step: u64,
        /// A hash of each tensor, whole: sixteen hexadecimal digits each.
        whole: Vec<String>,
    },
}
