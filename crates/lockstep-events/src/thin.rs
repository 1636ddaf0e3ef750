//! Which events of progress are worth keeping.
//!
//! Progress is told many times a second, for whoever watches. A record of a long run, or a log that a person
//! reads later, needs one now and then, to show that the run was alive.

use crate::event::Event;

/// Seconds between two events of progress that are kept.
const EVERY: f64 = 10.0;

/// Keeps every event, except most of those of progress.
#[derive(Debug, Clone)]
pub struct Thin {
    last: f64,
}

impl Thin {
    /// From the time `now` on, in seconds of any clock.
    pub fn new(now: f64) -> Self {
        Self { last: now }
    }

    /// Whether an event of the time `now` is kept. Rank 0 stands for the gang.
    pub fn keeps(&mut self, event: &Event, now: f64) -> bool {
        let progress = match event {
            Event::Progress(progress) if progress.rank != 0 => return false,
            Event::Progress(_) | Event::Embedding(_) => true,
            _ => false,
        };
        if progress && now - self.last < EVERY {
            return false;
        }
        if progress {
            self.last = now;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metrics;
    use crate::event::Progress;

    #[test]
    fn progress_is_kept_now_and_then_and_all_else_always() {
        let progress = |rank| {
            Event::Progress(Progress {
                epoch: 1,
                step: 1,
                steps: 2,
                metrics: Metrics::default(),
                samples_per_s: 1.0,
                rank,
            })
        };
        let mut thin = Thin::new(100.0);
        let mut kept = |rank, now| thin.keeps(&progress(rank), now);
        assert!(!kept(0, 109.0));
        assert!(!kept(1, 111.0));
        assert!(kept(0, 111.0));
        assert!(!kept(0, 120.0));
        assert!(kept(0, 121.0));
        assert!(thin.keeps(&Event::Stopping, 121.0));
        assert!(thin.keeps(&Event::Stopping, 121.0));
    }
}
