//! Ctrl-C while a job is followed: the job is somebody else's process, so the first leaves it alone.

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long after the first Ctrl-C a second one means the job.
const GRACE: Duration = Duration::from_secs(3);

/// What was asked for so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InterruptChoice {
    /// Nothing new.
    Nothing,
    /// Whether the job is meant too will show in a moment.
    Wait,
    /// Leave the job alone and go.
    Leave,
    /// Stop the job, and see how it ends.
    Stop,
    /// Go at once.
    Now,
}

/// Signals as they come.
pub(super) struct Interrupts {
    presses: Arc<AtomicUsize>,
    leave: Arc<AtomicBool>,
    /// How many presses were answered.
    answered: usize,
    first: Option<Instant>,
}

impl Interrupts {
    /// Heeds signals from now on.
    pub(super) fn heed() -> anyhow::Result<Self> {
        let (presses, leave) = (
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let mut signals =
            Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot handle signals")?;
        let (count, go) = (presses.clone(), leave.clone());
        let heed = move || {
            for signal in signals.forever() {
                match signal {
                    SIGINT => {
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                    _ => go.store(true, Ordering::Relaxed),
                }
            }
        };
        let thread = thread::Builder::new().name("signals".into());
        thread.spawn(heed).context("cannot handle signals")?;
        Ok(Self {
            presses,
            leave,
            answered: 0,
            first: None,
        })
    }

    /// What was asked for since the last time.
    pub(super) fn asked(&mut self) -> InterruptChoice {
        self.at(Instant::now())
    }

    fn at(&mut self, now: Instant) -> InterruptChoice {
        if self.leave.load(Ordering::Relaxed) {
            return InterruptChoice::Leave;
        }
        let presses = self.presses.load(Ordering::Relaxed);
        let waited = self.first.map(|first| now.duration_since(first));
        if presses == self.answered {
            return match waited {
                Some(waited) if self.answered == 1 && waited > GRACE => InterruptChoice::Leave,
                _ => InterruptChoice::Nothing,
            };
        }
        let before = self.answered;
        self.answered = presses;
        self.first.get_or_insert(now);
        match (before, presses) {
            (0, 1) => InterruptChoice::Wait,
            (0 | 1, 2) => InterruptChoice::Stop,
            _ => InterruptChoice::Now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interrupts() -> Interrupts {
        Interrupts {
            presses: Arc::default(),
            leave: Arc::default(),
            answered: 0,
            first: None,
        }
    }

    #[test]
    fn one_leaves_the_job_two_stop_it_three_go_at_once() {
        let mut interrupts = interrupts();
        let begin = Instant::now();
        assert_eq!(interrupts.at(begin), InterruptChoice::Nothing);
        interrupts.presses.store(1, Ordering::Relaxed);
        assert_eq!(interrupts.at(begin), InterruptChoice::Wait);
        assert_eq!(interrupts.at(begin + GRACE / 2), InterruptChoice::Nothing);
        assert_eq!(interrupts.at(begin + GRACE * 2), InterruptChoice::Leave);
        interrupts.presses.store(2, Ordering::Relaxed);
        assert_eq!(interrupts.at(begin), InterruptChoice::Stop);
        assert_eq!(interrupts.at(begin + GRACE * 2), InterruptChoice::Nothing);
        interrupts.presses.store(3, Ordering::Relaxed);
        assert_eq!(interrupts.at(begin), InterruptChoice::Now);
    }

    #[test]
    fn being_ended_leaves_the_job_at_once() {
        let mut interrupts = interrupts();
        interrupts.leave.store(true, Ordering::Relaxed);
        assert_eq!(interrupts.at(Instant::now()), InterruptChoice::Leave);
    }
}
