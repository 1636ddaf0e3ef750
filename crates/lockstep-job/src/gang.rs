//! `[gang]`: how the workers talk to each other.

use crate::field::Rule;
use crate::keys::{Any, keys, words};

keys! {
    /// How the workers talk to each other.
    pub struct JobGang: all default {
        /// What carries gradients and weights between workers.
        transport: JobTransport = default(JobTransport::Auto) => Any;
        /// Whether what workers exchange over TCP is encrypted. They prove themselves to each other either
        /// way; false is for a network on which nobody can read or take over a connection.
        encrypt: bool = default(true) => Any;
        /// Seconds that a worker waits for another that makes no progress before it gives it up.
        deadline_s: f64 = default(30.0) => Rule::SECONDS;
        /// Seconds that a worker may take from being started to having joined.
        start_deadline_s: f64 = default(30.0) => Rule::SECONDS;
        /// Seconds without a word from the coordinator after which a worker ends itself, where the
        /// coordinator cannot end it for certain.
        lease_s: f64 = default(15.0) => Rule::SECONDS;
    }
}

words! {
    /// What carries gradients and weights between workers.
    pub enum JobTransport {
        /// Shared memory where all workers are on one host, else TCP.
        "auto" Auto
        /// Shared memory.
        "shm" Shm
        /// TCP.
        "tcp" Tcp
    }
}
