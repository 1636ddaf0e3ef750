//! What waits for a sink: a bounded queue that its writer never waits for.
//!
//! Of what a run tells, most is progress, usage and log lines, which come again or lie in the run's folder. They are
//! left out when the queue is long; all else is left out only when it is so long that its reader must be dead.

use lockstep_events::Recorded;
use lockstep_events::event::Event;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// From how many waiting events on progress is left out.
const LONG: usize = 1_000;
/// From how many on everything is, but for the result.
const FULL: usize = 16_000;

/// Events on their way to one sink.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Arc<Recorded>>,
    /// No event comes any more, and until when the sink may take for what is left.
    closed: Option<Instant>,
    /// Something that does not come again was left out.
    lost: bool,
}

/// What the reader of a queue gets.
#[derive(Debug)]
pub(crate) enum Next {
    Event(Arc<Recorded>),
    /// That was all; the sink has until then.
    End(Instant),
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event, or leaves it out. Never waits.
    pub(crate) fn push(&self, event: &Arc<Recorded>) {
        let mut state = self.state();
        let waiting = state.waiting.len();
        let room = match &event.event {
            Event::Progress(_) | Event::Usage(_) | Event::Embedding(_) | Event::Log(_) => {
                waiting < LONG
            }
            Event::Result(_) => true,
            _ => waiting < FULL,
        };
        if room {
            state.waiting.push_back(event.clone());
            self.changed.notify_one();
        } else if waiting >= FULL {
            state.lost = true;
        }
    }

    /// No event comes any more.
    pub(crate) fn close(&self, deadline: Instant) {
        self.state().closed = Some(deadline);
        self.changed.notify_one();
    }

    /// The next event, as soon as there is one.
    pub(crate) fn next(&self) -> Next {
        let mut state = self.state();
        loop {
            if let Some(event) = state.waiting.pop_front() {
                return Next::Event(event);
            }
            if let Some(deadline) = state.closed {
                return Next::End(deadline);
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether something that does not come again was left out.
    pub(crate) fn has_lost(&self) -> bool {
        self.state().lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_events::Metrics;
    use lockstep_events::event::Progress;

    fn progress(step: u64) -> Arc<Recorded> {
        Arc::new(Recorded::now(Event::Progress(Progress {
            epoch: 1,
            step,
            steps: 10,
            metrics: Metrics::default(),
            samples_per_s: 1.0,
            rank: 0,
        })))
    }

    #[test]
    fn a_long_queue_leaves_out_progress_and_keeps_all_else() {
        let queue = Queue::default();
        for step in 0..2 * LONG as u64 {
            queue.push(&progress(step));
        }
        let other = Arc::new(Recorded::now(Event::Stopping));
        queue.push(&other);
        queue.close(Instant::now());
        let (mut all, mut last) = (0, None);
        while let Next::Event(event) = queue.next() {
            all += 1;
            last = Some(event);
        }
        assert_eq!(all, LONG + 1);
        assert_eq!(last, Some(other));
        assert!(!queue.has_lost(), "progress comes again");
    }

    #[test]
    fn a_full_queue_says_that_it_lost_something() {
        let queue = Queue::default();
        let other = Arc::new(Recorded::now(Event::Stopping));
        for _ in 0..=FULL {
            queue.push(&other);
        }
        assert!(queue.has_lost());
    }
}
