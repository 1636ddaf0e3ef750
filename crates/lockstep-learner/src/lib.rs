//! Whatever learns, behind one seam with two sides, and the loop of a worker that drives it.
//!
//! A [`Learner`] is opened once in each worker's process. It trains on one generation of the gang after the
//! other, stops when it is asked to, and reports. The trainer of networks is one; boosted trees and a user's
//! own script are others. [`worker::run`] hears the coordinator, and knows nothing of what is learned.
//!
//! A [`Coordinator`] is the other side, in the process that starts the workers: it prepares a job's run, and says what
//! the workers are told. A [`LearnerType`] is what both belong to; a program has a list of them ([`Learners`]).

pub mod conformance;
mod coordinator;
mod earlier;
mod error;
mod forecast;
mod gang;
mod instructions;
mod learners;
mod model;
mod reporter;
mod shared;
mod usage;
pub mod worker;

pub use coordinator::{Coordinator, Fork, FoundData, PlannedMemory, RunFacts, RunPlan};
pub use earlier::{EarlierRun, ForkFrom, ResumePoint};
pub use error::LearnerError;
pub use forecast::{Fact, Forecast, LayerLine, VectorFacts};
pub use gang::{Gang, JoinError};
pub use learners::{LearnerNeeds, LearnerType, Learners};
pub use model::{ModelDevice, TrainedModel};
pub use reporter::Reporter;
pub use shared::ShareError;

use lockstep_events::control::Finished;
use std::fmt;

/// Something that learns in a gang.
pub trait Learner {
    /// Takes part in one generation of the gang: begins with the state that [`Gang::assignment`] names, and
    /// trains to the end, or until [`Gang::wish`] says otherwise.
    ///
    /// # Guarantees
    /// What rank 0 publishes is there when it returns. The other ranks do not wait for that.
    ///
    /// # Errors
    /// When it cannot begin or go on. After one that says that a peer was lost, the learner keeps what it has
    /// opened, and is asked to train in the next generation.
    fn train(
        &mut self,
        gang: &Gang<'_>,
        reporter: &mut Reporter,
    ) -> Result<GenerationEnd, LearnerFailure>;
}

/// What the coordinator asks a generation to do after its step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Go on.
    GoOn,
    /// Write the state, and wait to begin again from it with other peers.
    Pause,
    /// Write the state, and end.
    Stop,
}

/// How a generation ended that nothing went wrong in.
#[derive(Debug, Clone, PartialEq)]
pub enum GenerationEnd {
    /// Training is at its end, or a stop was asked for.
    Finished(Box<Finished>),
    /// A pause was asked for; the state is written.
    Paused {
        /// Optimizer steps, rounds or the like that were done by then.
        step: u64,
    },
}

/// Why a learner cannot go on.
#[derive(Debug)]
pub struct LearnerFailure {
    /// What went wrong.
    pub error: Box<dyn std::error::Error + Send + Sync>,
    /// Whether this is only the consequence of another worker's failure.
    pub peer_lost: bool,
    /// Whether it is this worker's own failure, after which the learner can be asked to train again.
    pub again: bool,
    /// Whether only this process can do nothing more: another one in its place goes on. Then it ends as one that dies.
    pub ends_process: bool,
    /// The rank that was waited for in vain.
    pub waiting_for: Option<usize>,
    /// Optimizer steps, rounds or the like that were done by then.
    pub step: u64,
}

impl LearnerFailure {
    /// The learner's own failure, which would come again.
    pub fn new(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self {
            error: error.into(),
            peer_lost: false,
            again: false,
            ends_process: false,
            waiting_for: None,
            step: 0,
        }
    }
}

impl fmt::Display for LearnerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for LearnerFailure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

impl From<lockstep_gang::GangError> for LearnerFailure {
    fn from(error: lockstep_gang::GangError) -> Self {
        let waiting_for = match &error {
            lockstep_gang::GangError::PeerTimeout { rank, .. } => Some(*rank),
            _ => None,
        };
        Self {
            peer_lost: error.is_peer_lost(),
            waiting_for,
            ..Self::new(error)
        }
    }
}
