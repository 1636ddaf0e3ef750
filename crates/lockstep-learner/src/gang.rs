//! One generation of a gang, as a learner sees it.

use crate::instructions::Instructions;
use crate::{Wish, worker};
use lockstep_events::control::Assignment;
use lockstep_gang::{GangError, Membership, Plan, SharingCollective};
use std::net::TcpListener;

/// A worker's place in one generation.
pub struct Gang<'a> {
    pub(crate) assignment: &'a Assignment,
    pub(crate) membership: Membership,
    pub(crate) instructions: &'a Instructions,
    pub(crate) listener: Option<&'a TcpListener>,
    /// Tells people of something that does not stop the work.
    pub(crate) warn: &'a dyn Fn(String),
}

/// Why a worker cannot enter the exchange of its gang.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The gang fell apart.
    #[error(transparent)]
    Gang(#[from] GangError),
    /// Peers were to be reached in a way that this worker cannot.
    #[error("gang.transport: this worker was told to use TCP but was given no listener")]
    NoListener,
}

impl Gang<'_> {
    /// What this worker is to do.
    pub fn assignment(&self) -> &Assignment {
        self.assignment
    }

    /// What the coordinator asks for now, to be looked at after every step. Ranks hear it at different steps,
    /// so they must agree on one among themselves.
    pub fn wish(&self) -> Wish {
        self.instructions.wish(self.assignment.generation)
    }

    /// Enters the exchange that the assignment names. A learner that exchanges in its own way need not.
    ///
    /// # Errors
    /// When a peer does not come, or the exchange cannot be set up.
    pub fn join(&self, plan: Plan) -> Result<Box<dyn SharingCollective>, JoinError> {
        let membership = &self.membership;
        worker::join(self.assignment, plan, membership, self.listener, self.warn)
    }
}
