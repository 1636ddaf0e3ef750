//! Why hosts and their coordinator do not come together.

use lockstep_gang::GangError;
use std::io;
use std::path::PathBuf;

/// Why hosts and their coordinator do not come together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostsError {
    /// Too few hosts came.
    #[error(
        "{here} of the {enough} hosts that the run needs came within {seconds} s (gang.start_deadline_s); missing: {missing}"
    )]
    TooFew {
        /// How many are there.
        here: usize,
        /// How many are needed.
        enough: usize,
        /// The numbers of those that are not there.
        missing: String,
        /// How long they were waited for.
        seconds: f64,
    },
    /// The coordinator is out of reach.
    #[error(
        "cannot reach the coordinator, host 0 at {coordinator}, within {seconds} s (gang.start_deadline_s): {last}"
    )]
    NoCoordinator {
        /// Its name and port.
        coordinator: String,
        /// How long it was tried.
        seconds: f64,
        /// Why the last attempt failed.
        last: String,
    },
    /// The coordinator does not want this host.
    #[error("the coordinator sent this host away: {0}")]
    SentAway(String),
    /// The token cannot be used.
    #[error("cannot use the token in {}: {why}", path.display())]
    Token {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The address cannot be listened at.
    #[error(transparent)]
    Gang(#[from] GangError),
    /// The system refused something.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl HostsError {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}
