//! A count of the work that this process has done.
//!
//! That a process lives says little: its heart may beat in one thread while the one that works hangs for
//! ever. So whatever works counts: a layer computed, a block of data hashed, decoded or written. Whoever
//! watches over the process is told the count with every sign of life, and knows by it whether the work
//! gets on. Waiting for others is no work and counts nothing.
//!
//! The count is the process's own and only grows. What it counts has no unit; that it moves is all that
//! it says. Counting is one addition without order, cheap enough for the inside of a training step.

mod phase;
mod profile;

pub use phase::{
    Activity, Phase, activity, begin_phases, enter, enter_layer, enter_part, join, leave, time_in,
};
pub use profile::{Label, Span, ThreadProfile, begin_profile, end_profile};

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

static DONE: AtomicU64 = AtomicU64::new(0);

/// Nanoseconds that were spent waiting for other processes.
static WAITED: AtomicU64 = AtomicU64::new(0);

/// Counts a piece of work that was done.
#[inline]
pub fn advance() {
    DONE.fetch_add(1, Ordering::Relaxed);
}

/// How much was counted so far.
pub fn count() -> u64 {
    DONE.load(Ordering::Relaxed)
}

/// Counts time that was spent waiting for other processes, which is no work.
#[inline]
pub fn waited(time: Duration) {
    WAITED.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    phase::note_waited(time);
}

/// How long this process has waited for others so far, in all of its threads together.
pub fn time_waited() -> Duration {
    Duration::from_nanos(WAITED.load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_all_threads_is_counted() {
        let before = count();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| advance()));
            }
        });
        assert!(count() >= before + 4000);
    }
}
