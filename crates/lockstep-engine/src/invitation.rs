//! What a worker is told through its standard input, before anything else: where the coordinator
//! listens, how to prove that it belongs there, and which rank it is.
//!
//! Standard input is private to the two processes, unlike arguments and the environment, which other
//! users of the machine may read.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// One line of JSON on the worker's standard input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Invitation {
    /// Where the coordinator listens.
    pub(crate) address: SocketAddr,
    /// The run's secret, in hexadecimal digits.
    pub(crate) secret: String,
    /// The worker's rank.
    pub(crate) rank: usize,
    /// The generation of the gang.
    pub(crate) generation: u16,
    /// Whether the workers exchange over TCP, so that this one must listen for its peers.
    pub(crate) listen: bool,
}
