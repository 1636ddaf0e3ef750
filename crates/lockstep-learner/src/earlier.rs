//! Earlier runs: to go on with, or to begin a new one from.

use lockstep_events::event::{RunResult, Status};
use lockstep_place::Place;
use lockstep_runs::RunDir;

/// A run that left a state.
#[derive(Debug, Clone, Copy)]
pub struct EarlierRun<'a> {
    /// The run.
    pub run: &'a RunDir,
    /// Its newest whole checkpoint.
    pub checkpoint: &'a Place,
    /// Steps that were done by then.
    pub step: u64,
}

impl EarlierRun<'_> {
    /// Whether the run came to its end with so many epochs, by its own word. One that came to its end without saying so, in
    /// a power cut, may still do that.
    pub fn has_succeeded_with(&self, epochs: u32) -> bool {
        let text = self.run.result().read().unwrap_or_default();
        let result = serde_json::from_slice::<RunResult>(&text);
        result.is_ok_and(|result| result.status == Status::Succeeded && result.epochs == epochs)
    }
}

/// Where a run goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumePoint {
    /// Steps that were done by then.
    pub step: u64,
    /// Epochs that were trained completely.
    pub epochs: u32,
    /// The record of metrics up to it.
    pub history: String,
    /// Where that is, in words, if the learner can say so.
    pub words: Option<String>,
}

/// Which weights of a run another one begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForkFrom {
    /// Those that were kept as the best so far; the last where none are, since nothing is validated.
    Best,
    /// Those of the newest step.
    Last,
}
