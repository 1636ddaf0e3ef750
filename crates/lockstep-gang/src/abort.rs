//! What ends a wait: the deadline, or somebody who calls it off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a rank waits for a peer before it calls it lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline(pub Duration);

impl Default for Deadline {
    fn default() -> Self {
        Self(Duration::from_secs(30))
    }
}

/// Calls off whatever a collective of this process waits for, or lets it wait longer; given to the thread
/// that hears the coordinator. Every clone is the same switch.
#[derive(Debug, Clone, Default)]
pub struct AbortSwitch(Arc<State>);

#[derive(Debug, Default)]
struct State {
    aborted: AtomicBool,
    /// When waiting last made sense, in milliseconds since the switch was made.
    renewed: AtomicU64,
    made: Made,
}

/// When a switch was made.
#[derive(Debug)]
struct Made(Instant);

impl Default for Made {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl AbortSwitch {
    /// Makes every wait of the collective fail with [`GangError::Aborted`](crate::GangError::Aborted),
    /// now and from now on.
    pub fn abort(&self) {
        self.0.aborted.store(true, Ordering::Release);
    }

    /// Whether it was called off.
    pub fn is_aborted(&self) -> bool {
        self.0.aborted.load(Ordering::Acquire)
    }

    /// Says that waiting makes sense, because somebody in the gang gets on: the deadlines of all waits
    /// begin anew.
    pub fn renew(&self) {
        let now = self.0.made.0.elapsed().as_millis() as u64;
        self.0.renewed.store(now, Ordering::Relaxed);
    }

    /// How much of a wait of `waited` counts against its deadline: what came after the last
    /// [renewal](Self::renew).
    pub fn in_vain(&self, waited: Duration) -> Duration {
        let renewed = Duration::from_millis(self.0.renewed.load(Ordering::Relaxed));
        waited.min(self.0.made.0.elapsed().saturating_sub(renewed))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_waiting_since_the_last_renewal_is_in_vain() {
        let switch = AbortSwitch::default();
        let long = Duration::from_secs(100);
        std::thread::sleep(Duration::from_millis(30));
        assert!(switch.in_vain(long) >= Duration::from_millis(30));
        assert_eq!(
            switch.in_vain(Duration::from_millis(5)),
            Duration::from_millis(5)
        );
        let renewal = std::time::Instant::now();
        switch.renew();
        // Renewals are kept in milliseconds.
        assert!(switch.in_vain(long) <= renewal.elapsed() + Duration::from_millis(1));
    }
}
