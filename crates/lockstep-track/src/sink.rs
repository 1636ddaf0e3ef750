//! The seam to whoever hears of a run.

use crate::{Origin, SinkError};
use lockstep_events::Recorded;
use lockstep_events::event::Started;
use lockstep_runs::RunDir;
use std::time::Instant;

/// A run that has begun to train: its folder is there to stay.
#[derive(Debug, Clone)]
pub struct Begun {
    /// Its folder.
    pub run: RunDir,
    /// As what it was announced.
    pub started: Started,
    /// Where it comes from: command, machine, version of the code.
    pub origin: Origin,
}

/// Somebody who hears of a run. All calls come from one thread, in this order: `begin` once, `event` for each event
/// from the first on, `finish` once.
///
/// An error is told to the user once, whatever it is; the sink is called again all the same, so that it can catch up.
/// What `finish` says is told too: it is what the sink does not have.
pub trait Sink: Send {
    /// What people call it.
    fn name(&self) -> &str;

    /// The run has done its first step. Events from before it follow.
    ///
    /// # Errors
    /// When the sink cannot do its part.
    fn begin(&mut self, begun: &Begun) -> Result<(), SinkError>;

    /// Something happened. When a sink falls behind, it does not hear all of progress, usage and log lines.
    ///
    /// # Errors
    /// When the sink cannot do its part.
    fn event(&mut self, event: &Recorded) -> Result<(), SinkError>;

    /// The run ended, and its last event was told. What is not done at the deadline is not waited for.
    ///
    /// # Errors
    /// When the sink cannot do its part.
    fn finish(&mut self, deadline: Instant) -> Result<(), SinkError>;

    /// How what a sink did not get in time can be given to it later, as a sentence.
    fn later(&self, _begun: &Begun) -> Option<String> {
        None
    }

    /// The run ended before it began: it left no folder, and `begin` was never called.
    ///
    /// # Errors
    /// When the sink cannot do its part.
    fn never_began(&mut self, _last: &Recorded, _deadline: Instant) -> Result<(), SinkError> {
        Ok(())
    }
}
