//! What both followers of logs have in common: what they say, and when a connection that was lost is tried again.

use crate::jobs::JobInfo;
use std::thread;
use std::time::{Duration, Instant};

/// What is heard of the log of a job, whose end is told as an `E`.
#[derive(Debug)]
pub enum LogEvent<E = JobInfo> {
    /// More of the log, in pieces that need not end with a line.
    Text(String),
    /// Nothing within the time.
    Nothing,
    /// The connection is lost, and is tried again.
    Lost(String),
    /// The job has ended, and its log was read as far as there is one.
    Ended(Box<E>),
}

/// When a connection is tried again, and for how long.
pub(crate) struct Retry {
    patience: Duration,
    /// The first pause between two attempts, and the longest.
    pauses: (Duration, Duration),
    pause: Duration,
    /// When the next attempt is due.
    pub(crate) next: Instant,
    /// Since when nothing gets through.
    pub(crate) lost: Option<Instant>,
}

impl Retry {
    pub(crate) fn new(patience: Duration, pauses: (Duration, Duration)) -> Self {
        Self {
            patience,
            pauses,
            pause: pauses.0,
            next: Instant::now(),
            lost: None,
        }
    }

    /// Whether an attempt is due; if not, sleeps until it is, but no longer than `wait`.
    pub(crate) fn is_due(&self, wait: Duration) -> bool {
        let left = self.next.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            thread::sleep(left.min(wait));
        }
        left.is_zero()
    }

    /// Something got through.
    pub(crate) fn back(&mut self) {
        self.lost = None;
        self.pause = self.pauses.0;
    }

    /// Puts the next attempt off. Pauses grow to the longest.
    pub(crate) fn put_off(&mut self) {
        self.put_off_at_most(self.pauses.1);
    }

    /// Puts the next attempt off. Pauses grow to `longest`.
    pub(crate) fn put_off_at_most(&mut self, longest: Duration) {
        self.next = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(longest);
    }

    /// Nothing gets through. How long that has been so, if it is longer than the patience.
    pub(crate) fn out_of_patience(&mut self) -> Option<Duration> {
        let lost_for = self.lost.get_or_insert_with(Instant::now).elapsed();
        (lost_for > self.patience).then_some(lost_for)
    }
}
