//! Which events of progress are worth keeping.
//!
//! Progress is told many times a second, for whoever watches. A record of a long run, or a log that a person
//! reads later, needs one now and then: to show that the run was alive, or to draw a curve.

use crate::event::Event;

/// Seconds between two events of progress that are kept for people to read.
const EVERY: f64 = 10.0;

/// Seconds between two that are kept for curves, at first. Later it is a share of the time since the beginning,
/// so that a record of any length has some thousands of points at most.
const EVERY_AT_FIRST: f64 = 0.1;
const SHARE: f64 = 1.0 / 500.0;

/// Keeps every event, except most of those of progress.
#[derive(Debug, Clone)]
pub struct Thin {
    began: f64,
    last: f64,
    for_curves: bool,
}

impl Thin {
    /// From the time `now` on, in seconds of any clock: few enough for people to read.
    pub fn new(now: f64) -> Self {
        Self {
            began: now,
            last: now,
            for_curves: false,
        }
    }

    /// The same, but enough of them that a curve can be drawn.
    pub fn for_curves(now: f64) -> Self {
        Self {
            for_curves: true,
            ..Self::new(now)
        }
    }

    /// Whether an event of the time `now` is kept. Rank 0 stands for the gang.
    pub fn keeps(&mut self, event: &Event, now: f64) -> bool {
        let progress = match event {
            Event::Progress(progress) if progress.rank != 0 => return false,
            Event::Progress(_) | Event::Embedding(_) => true,
            _ => false,
        };
        let every = match self.for_curves {
            true => EVERY_AT_FIRST.max((now - self.began) * SHARE),
            false => EVERY,
        };
        if progress && now - self.last < every {
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

    #[test]
    fn a_curve_of_any_length_has_some_thousands_of_points() {
        let progress = Event::Embedding(crate::event::Embedding {
            parts_done: 0,
            parts: 1,
            pictures_done: 0,
            pictures: 1,
            pictures_per_s: 1.0,
        });
        let kept = |seconds: u32| {
            let mut thin = Thin::for_curves(0.0);
            let times = (1..=seconds * 10).map(|tenth| f64::from(tenth) / 9.9);
            times.filter(|&now| thin.keeps(&progress, now)).count()
        };
        assert_eq!(kept(5), 50);
        assert!((2000..5000).contains(&kept(36_000)));
    }
}
