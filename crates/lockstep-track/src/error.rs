//! Why a sink could not do its part.

use lockstep_place::PlaceError;
use lockstep_runs::RunsError;
use thiserror::Error;

/// Why a sink could not do its part. The run goes on; its user is told once.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SinkError {
    /// A file of the run, or of the sink, could not be read or written.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The run that is tracked is no longer there, or is not what it should be.
    #[error(transparent)]
    Run(#[from] RunsError),
    /// A server did not answer. What it missed is sent later.
    #[error("cannot {doing} at {address}: {cause}")]
    Away {
        /// What was asked of it.
        doing: String,
        /// Where it is, without secrets.
        address: String,
        /// Why.
        cause: String,
    },
    /// A server answered that it will not.
    #[error("{address} refuses to {doing} ({status}): {said}")]
    Refused {
        /// What was asked of it.
        doing: String,
        /// Where it is, without secrets.
        address: String,
        /// The HTTP status.
        status: u16,
        /// What it said.
        said: String,
    },
    /// Anything else, in words.
    #[error("{0}")]
    Failed(String),
}
