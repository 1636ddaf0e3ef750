//! What ends a wait: the deadline, or somebody who calls it off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a rank waits for a peer before it calls it lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline(pub Duration);

impl Default for Deadline {
    fn default() -> Self {
        Self(Duration::from_secs(30))
    }
}

/// Calls off whatever a collective of this process waits for; given to the thread that hears the
/// coordinator. Every clone is the same switch.
#[derive(Debug, Clone, Default)]
pub struct AbortSwitch(Arc<AtomicBool>);

impl AbortSwitch {
    /// Makes every wait of the collective fail with [`GangError::Aborted`](crate::GangError::Aborted),
    /// now and from now on.
    pub fn abort(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it was called off.
    pub fn is_aborted(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Which member of which generation a rank joins a gang as, and what ends its waits.
#[derive(Debug, Clone, Default)]
pub struct Membership {
    /// The rank.
    pub rank: usize,
    /// The generation of the gang.
    pub generation: u16,
    /// How long it waits for a peer.
    pub deadline: Deadline,
    /// Ends its waits, from the moment at which it begins to join.
    pub abort: AbortSwitch,
}
