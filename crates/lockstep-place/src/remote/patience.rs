//! How often and for how long one operation is tried.

use super::failure::AttemptFailure;
use crate::Access;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// The first pause between two attempts; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The attempts of one operation.
pub(super) struct Patience {
    deadline: Instant,
    retries: u32,
    /// How often it was tried.
    pub(super) tries: u32,
    /// Why the attempt before the last failed, if there was one.
    pub(super) before: Option<AttemptFailure>,
}

impl Patience {
    pub(super) fn new(access: &Access) -> Patience {
        Patience {
            deadline: Instant::now() + access.timeout(),
            retries: access.retries,
            tries: 0,
            before: None,
        }
    }

    /// Makes one attempt, as long as the time lasts.
    pub(super) async fn attempt<T>(
        &mut self,
        attempt: impl Future<Output = Result<T, AttemptFailure>>,
    ) -> Result<T, AttemptFailure> {
        self.tries += 1;
        match timeout_at(self.deadline, attempt).await {
            Ok(result) => result,
            Err(_) => Err(AttemptFailure::Late),
        }
    }

    /// Waits before another attempt, or returns the failure to report if there shall be none.
    pub(super) async fn pause(&mut self, failure: AttemptFailure) -> Result<(), AttemptFailure> {
        if !failure.may_pass() || self.tries > self.retries {
            return Err(failure);
        }
        let until = Instant::now() + pause_after(self.tries, jitter());
        self.before = Some(failure);
        if until >= self.deadline {
            return Err(AttemptFailure::Late);
        }
        sleep(until - Instant::now()).await;
        Ok(())
    }
}

/// The pause after so many tries: doubled each time, and up to half of it left out by `jitter`, so that
/// workers that failed together do not come back together.
fn pause_after(tries: u32, jitter: f64) -> Duration {
    let doublings = tries.saturating_sub(1).min(16);
    let whole = (FIRST_PAUSE * 2u32.pow(doublings)).min(LONGEST_PAUSE);
    whole.mul_f64(1.0 - jitter / 2.0)
}

/// A number from 0 to 1, another each time. Nothing but the time of an attempt depends on it.
fn jitter() -> f64 {
    let random = RandomState::new().hash_one(());
    random as f64 / u64::MAX as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound() {
        let pauses: Vec<u64> = (1..=8)
            .map(|tries| pause_after(tries, 0.0).as_millis() as u64)
            .collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(pause_after(u32::MAX, 1.0), LONGEST_PAUSE / 2);
        assert!(
            (0..100)
                .map(|_| jitter())
                .all(|jitter| (0.0..=1.0).contains(&jitter))
        );
    }
}
