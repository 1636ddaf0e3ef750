//! The wish to end a run early, shared between whoever hears it and whoever obeys it.
//!
//! There are two degrees: finish the step and write the state, or end at once. A wish only ever
//! grows; nothing takes it back. Raising it is one atomic operation, so a signal handler may do it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// How urgently a run shall end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Stop {
    /// Nobody asked.
    No = 0,
    /// Finish the step in progress, write the state, and end.
    Graceful = 1,
    /// End all workers without waiting for them.
    Now = 2,
}

/// A handle on one run's wish to stop; clones share it.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicU8>);

impl StopFlag {
    /// A flag that nobody raised yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Raises the wish to at least `stop`.
    pub fn raise(&self, stop: Stop) {
        self.0.fetch_max(stop as u8, Ordering::Release);
    }

    /// Raises the wish by one degree, as another press of Ctrl-C does, and says what it is now.
    pub fn escalate(&self) -> Stop {
        match self.get() {
            Stop::No => self.raise(Stop::Graceful),
            Stop::Graceful | Stop::Now => self.raise(Stop::Now),
        }
        self.get()
    }

    /// What is asked for at this moment.
    pub fn get(&self) -> Stop {
        match self.0.load(Ordering::Acquire) {
            0 => Stop::No,
            1 => Stop::Graceful,
            _ => Stop::Now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_grows_and_is_never_taken_back() {
        let flag = StopFlag::new();
        let seen_elsewhere = flag.clone();
        assert_eq!(flag.get(), Stop::No);
        assert_eq!(flag.escalate(), Stop::Graceful);
        assert_eq!(flag.escalate(), Stop::Now);
        flag.raise(Stop::Graceful);
        assert_eq!(seen_elsewhere.get(), Stop::Now);
    }
}
