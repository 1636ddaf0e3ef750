//! How often copies are made.

use std::time::Instant;

/// The most of the time that copies may take, unless the job wants one of every step.
const SHARE: f64 = 0.01;

/// The weight of a new measurement of time.
const NEW: f64 = 0.25;

/// Says when a copy is due, so that copies take no more than [`SHARE`] of the time.
pub(super) struct Pace {
    /// Seconds that a copy takes, and a step without; 0 before they were measured.
    copy_s: f64,
    step_s: f64,
    /// Steps since the last copy, that in progress included.
    since: u64,
    /// When the steps that are measured began, and how many there were, that in progress included.
    began: Instant,
    measured: u64,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self {
            copy_s: 0.0,
            step_s: 0.0,
            since: 0,
            began: Instant::now(),
            measured: 0,
        }
    }

    /// Begins to measure steps.
    pub(super) fn resume(&mut self) {
        self.began = Instant::now();
        self.measured = 0;
    }

    pub(super) fn step(&mut self) {
        self.since += 1;
        self.measured += 1;
    }

    pub(super) fn is_due(&self) -> bool {
        self.copy_s == 0.0 || self.since as f64 * SHARE * self.step_s >= self.copy_s
    }

    /// The steps that are measured end here.
    pub(super) fn pause(&mut self, now: Instant) {
        if self.measured > 0 {
            let took = now.duration_since(self.began).as_secs_f64() / self.measured as f64;
            mix(&mut self.step_s, took);
        }
    }

    pub(super) fn copied(&mut self, took: f64) {
        mix(&mut self.copy_s, took);
        self.since = 0;
        self.resume();
    }
}

/// Takes a measurement into a mean, of which the first is all.
fn mix(mean: &mut f64, new: f64) {
    *mean = match *mean {
        0.0 => new,
        before => before + NEW * (new - before),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps, of so many, that are copied if a step takes 1 s and a copy `cost`.
    fn copied(cost: f64, steps: u64) -> Vec<u64> {
        let mut pace = Pace::new();
        let mut copied = Vec::new();
        for step in 1..=steps {
            pace.step();
            if pace.is_due() {
                pace.step_s = 1.0;
                pace.copied(cost);
                copied.push(step);
            }
        }
        copied
    }

    #[test]
    fn copies_that_cost_little_are_made_of_every_step_and_dear_ones_now_and_then() {
        assert_eq!(copied(SHARE, 3), [1, 2, 3]);
        assert_eq!(copied(3.0 * SHARE, 10), [1, 4, 7, 10]);
    }
}
