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
    /// A token cannot be called so.
    #[error(
        "a token cannot be called {0:?}: a name has up to 64 letters, digits and -_.@, and is not local"
    )]
    TokenName(String),
    /// There is one of this name.
    #[error("there is a token of the name {0}; remove it first, or choose another name")]
    TokenExists(String),
    /// There is none of this name.
    #[error("there is no token of the name {name}; there are: {}", known.join(", "))]
    NoToken {
        /// The name.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
}
