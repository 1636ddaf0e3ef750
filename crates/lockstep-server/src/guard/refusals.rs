//! How many refusals are written down: some at once, then a few a second.
//!
//! A stranger can be refused a hundred thousand times in a second. If each were a line, they would wash away what somebody
//! wants to find later. Each caller that is known has a share of its own, so that no stranger can hide what it does.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// So many of one caller are written down at once.
const AT_ONCE: f64 = 100.0;
/// So many a second after that.
const A_SECOND: f64 = 2.0;
/// The most callers that are told apart.
const CALLERS: usize = 1000;

/// What is written down of each caller's refusals; nobody's are those of strangers.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<HashMap<Option<String>, Share>>);

#[derive(Debug)]
struct Share {
    left: f64,
    filled: Instant,
    /// How many were left out since the last line.
    left_out: u64,
}

impl Refusals {
    /// Whether one more is written down, and then how many were left out before it.
    pub(super) fn one_more(&self, who: Option<&str>, now: Instant) -> Option<u64> {
        let mut shares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let who = who.map(str::to_owned);
        // Names of tokens are few. Should they not be, the rest are strangers.
        let who = if shares.len() < CALLERS { who } else { None };
        let share = shares.entry(who).or_insert(Share {
            left: AT_ONCE,
            filled: now,
            left_out: 0,
        });
        let passed = now.saturating_duration_since(share.filled).as_secs_f64();
        share.left = (share.left + passed * A_SECOND).min(AT_ONCE);
        share.filled = now;
        if share.left < 1.0 {
            share.left_out += 1;
            return None;
        }
        share.left -= 1.0;
        Some(std::mem::take(&mut share.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_stranger_who_is_refused_without_end_hides_nobody() {
        let refusals = Refusals::default();
        let now = Instant::now();
        let lines = (0..155_000).filter(|_| refusals.one_more(None, now).is_some());
        assert_eq!(lines.count(), 100);
        assert_eq!(refusals.one_more(Some("anna"), now), Some(0));
        let later = now + Duration::from_secs(5);
        assert_eq!(refusals.one_more(None, later), Some(154_900));
        let lines = (0..1000).filter(|_| refusals.one_more(None, later).is_some());
        assert_eq!(lines.count(), 9);
    }
}
