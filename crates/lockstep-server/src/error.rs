//! Why a server does not start.

use std::net::SocketAddr;
use std::path::PathBuf;

/// What can go wrong before a server answers.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address is taken, or not this machine's.
    #[error("cannot listen on {address}: {source}; --port chooses another port")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The queue of jobs cannot be opened.
    #[error(transparent)]
    Queue(#[from] lockstep_queue::QueueError),
    /// A file of the server's own cannot be used.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}
