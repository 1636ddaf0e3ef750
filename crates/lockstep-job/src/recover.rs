//! `[recover]`: what happens when a worker is lost.

use crate::keys::{Any, Within, keys, words};
use crate::train::MAX_WORKERS;

/// Few enough that the number of a generation, of which each restart makes a new one, never runs out.
const MAX_RESTARTS: u32 = 10_000;

keys! {
    /// What happens when a worker is lost.
    pub struct Recover (Copy, Eq): all default {
        /// How often a run begins again from its newest state before it fails.
        max_restarts: u32 = default(3) => Within(0..=MAX_RESTARTS);
        /// How few workers a run goes on with when lost ones cannot be replaced.
        min_workers: usize = default(1) => 1..=MAX_WORKERS;
        /// How often the state is copied to memory that outlives a worker.
        copies: JobCopies = default(JobCopies::Auto) => Any;
    }
}

words! {
    /// How often the state is copied to memory that outlives a worker.
    pub enum JobCopies {
        /// As often as it costs next to nothing.
        "auto" Auto
        /// After every step: none is ever repeated.
        "every-step" EveryStep
        /// Never.
        "off" Off
    }
}
