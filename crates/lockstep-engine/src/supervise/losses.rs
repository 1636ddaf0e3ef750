//! What failures cost a run: how often it began again, the steps done twice, and the time.

use std::time::{Duration, Instant};

/// The account of a run's losses.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    restarts: u32,
    repeated: u64,
    lost: Duration,
    /// When the failure that is being made up for was seen.
    since: Option<Instant>,
    /// How often the gang became larger or smaller in good order, and the time that it stood still for that.
    resizes: u32,
    resizing: Duration,
    /// When it was asked to pause for that.
    paused: Option<Instant>,
    /// Optimizer steps that were done at most.
    furthest: u64,
    /// The same when the present generation began: what it does itself it has not done twice.
    before: u64,
}

impl Losses {
    /// A generation begins. Returns the steps that are known to be done.
    pub(crate) fn begins(&mut self) -> u64 {
        self.before = self.furthest;
        self.before
    }

    /// A worker has done so many steps.
    pub(crate) fn reached(&mut self, step: u64) {
        self.furthest = self.furthest.max(step);
    }

    /// A failure was seen.
    pub(crate) fn began(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    /// The gang begins again. Returns how often it has.
    pub(crate) fn count_restart(&mut self) -> u32 {
        self.restarts += 1;
        self.restarts
    }

    /// The gang is asked to pause, to become larger or smaller.
    pub(crate) fn pauses(&mut self) {
        self.paused = Some(Instant::now());
    }

    /// How often it became larger or smaller, and the seconds from each request to pause to the next step.
    pub(crate) fn resizes(&self) -> (u32, f64) {
        (self.resizes, self.resizing.as_secs_f64())
    }

    /// The gang has done its first step again, from this one on.
    pub(crate) fn resumed(&mut self, step: u64) {
        if let Some(paused) = self.paused.take().filter(|_| self.since.is_none()) {
            self.resizes += 1;
            self.resizing += paused.elapsed();
        }
        if self.since.is_some() {
            self.repeated += self.before.saturating_sub(step);
        }
    }

    /// All steps that were done before are done again.
    pub(crate) fn caught_up(&mut self) {
        if let Some(since) = self.since.take() {
            self.lost += since.elapsed();
        }
    }

    /// How often the gang began again, the steps that were done twice, and the seconds from failures
    /// until their steps were done again.
    pub(crate) fn account(&self) -> (u32, u64, f64) {
        (self.restarts, self.repeated, self.lost.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_one_worker_reports_before_another_has_begun_is_not_done_twice() {
        let mut losses = Losses::default();
        losses.reached(10);
        losses.began();
        assert_eq!(losses.begins(), 10);
        losses.reached(11);
        losses.resumed(10);
        assert_eq!(losses.account().1, 0);
        losses.began();
        assert_eq!(losses.begins(), 11);
        losses.resumed(8);
        assert_eq!(losses.account().1, 3);
    }
}
