//! What a run would come to, for people and programs to read before it begins.

use lockstep_events::event::WorkerThreads;
use serde::Serialize;
use serde_json::Value;

/// What a run would come to.
#[derive(Debug, Clone)]
pub struct Forecast {
    /// The model's layers, where it has any.
    pub layers: Vec<LayerLine>,
    /// Facts with their names, in the order in which they are shown.
    pub facts: Vec<(&'static str, Fact)>,
    /// What a person may not expect, each a sentence.
    pub notes: Vec<String>,
    /// The same for programs.
    pub json: Value,
}

/// One layer of a model, for people to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LayerLine {
    /// Its name: the prefix of its tensors' names.
    pub name: String,
    /// What it is, as the job file calls it.
    pub kind: String,
    /// The shape of its output for one sample.
    pub output: String,
    /// Its parameters.
    pub parameters: usize,
}

/// Something that is known of a run before it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// Samples by what they are used for.
    Samples {
        /// To train on.
        train: usize,
        /// To validate.
        val: usize,
        /// To test.
        test: usize,
    },
    /// Optimizer steps.
    Steps {
        /// In an epoch.
        per_epoch: u64,
        /// How many epochs there are.
        epochs: u32,
    },
    /// The lanes that each worker computes.
    Lanes(Vec<usize>),
    /// The size of a model.
    Model {
        /// Its parameters.
        parameters: usize,
        /// The bytes of its state.
        bytes: usize,
    },
    /// Memory that training takes.
    Memory {
        /// Bytes in each worker.
        per_worker: usize,
        /// Bytes that all share.
        shared: usize,
    },
    /// Worker processes.
    Workers(usize),
    /// On how many threads each worker computes.
    Threads(WorkerThreads),
    /// A command, word by word.
    Command(Vec<String>),
    /// Anything else, in words.
    Words(String),
}

/// What is known of vectors that pictures will become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorFacts {
    /// Numbers in a vector.
    pub width: usize,
    /// The names of the classes, sorted.
    pub classes: Vec<String>,
    /// Pictures to train on.
    pub train: usize,
    /// Pictures to validate.
    pub val: usize,
    /// Pictures to test.
    pub test: usize,
}
