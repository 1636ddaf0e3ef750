//! Everything that can go wrong in a gang, with the rank that it went wrong with.

/// Why a gang's exchange, rendezvous or control link failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GangError {
    /// Chunks, lanes and workers do not make a plan.
    #[error("not a plan: {reason}")]
    BadPlan {
        /// What was found and what would be right.
        reason: String,
    },

    /// A peer did not do its part in time. It may be dead, stuck or only slow.
    #[error("rank {rank} did not {what} within {seconds} s")]
    PeerTimeout {
        /// The peer that was waited for.
        rank: usize,
        /// What it should have done, as in "post chunk 3".
        what: String,
        /// How long this rank waited.
        seconds: f64,
    },

    /// A peer is gone.
    #[error("rank {rank} was lost: {reason}")]
    PeerLost {
        /// The peer that is gone.
        rank: usize,
        /// How this rank knows.
        reason: String,
    },

    /// The coordinator called the step off.
    #[error("the coordinator aborted this gang")]
    Aborted,

    /// This worker belongs to a generation of the gang that was replaced; it may not write any more.
    #[error("this worker is of generation {mine}, but the gang is at generation {current}")]
    Replaced {
        /// The generation that this worker joined.
        mine: u16,
        /// The generation that the gang is at.
        current: u16,
    },

    /// Two sides that must agree do not: version, plan, number of workers, generation.
    #[error("{what} differs: {found} here, {expected} there")]
    Mismatch {
        /// What differs.
        what: &'static str,
        /// This side's.
        found: String,
        /// The other side's.
        expected: String,
    },

    /// A peer sent something that the protocol does not allow at this point.
    #[error("rank {rank} broke the protocol: {what}")]
    Protocol {
        /// The peer.
        rank: usize,
        /// What it sent, and what would have been right.
        what: String,
    },

    /// The other side could not prove itself, or spoke another language.
    #[error("handshake with {peer} failed: {reason}")]
    Handshake {
        /// Its address.
        peer: String,
        /// What was wrong.
        reason: String,
    },

    /// The other side of a control link closed it.
    #[error("the control link was closed by the other side")]
    Closed,

    /// What came over a control link is not what the other side sent, or not in its turn.
    #[error("a control message was altered, repeated or left out on the way")]
    Altered,

    /// A message on the control link is larger than the link allows.
    #[error("a control message of {bytes} bytes is over the limit of {limit}")]
    FrameTooLarge {
        /// The message's size.
        bytes: usize,
        /// The largest allowed.
        limit: usize,
    },

    /// A message on the control link is not what was expected there.
    #[error("a control message could not be read or written: {0}")]
    Message(#[from] serde_json::Error),

    /// A string that should be a secret is not one.
    #[error("a secret is 64 hexadecimal digits; this is not")]
    BadSecret,

    /// The operating system refused something.
    #[error("could not {what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
}

impl GangError {
    /// Whether this is only the consequence of another worker's failure: the peer is gone or silent,
    /// or the coordinator called the step off. The worker that reports such an error is healthy.
    pub fn is_peer_lost(&self) -> bool {
        matches!(
            self,
            Self::PeerLost { .. } | Self::PeerTimeout { .. } | Self::Aborted
        )
    }

    /// Wraps an error of the operating system with what was tried.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io {
            what: what.into(),
            source,
        }
    }
}
