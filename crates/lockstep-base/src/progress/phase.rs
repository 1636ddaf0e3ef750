//! What the thread that trains spends its time on.
//!
//! Looking at the clock takes some ten nanoseconds, and a step has hundreds of places to look: so nothing is measured
//! unless somebody asks for it ([`begin_phases`]), and then of that thread alone. Time that it waits for others is
//! [`Phase::Waiting`], whatever it waits within.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a step consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// None of the others: between steps, and evaluation.
    Other,
    /// Making batches.
    Data,
    /// Forward passes.
    Forward,
    /// Backward passes.
    Backward,
    /// Waiting for other workers.
    Waiting,
    /// Handing over what was computed, and taking what others did.
    Exchange,
    /// Adding up gradients, and the optimizer.
    Update,
}

/// Nanoseconds of each phase.
static SPENT: [AtomicU64; 7] = [const { AtomicU64::new(0) }; 7];

thread_local! {
    /// The phase that this thread is in, and since when; none where nobody asked.
    static NOW: Cell<Option<(Phase, Instant)>> = const { Cell::new(None) };
}

/// Measures the phases of this thread from now on.
pub fn begin_phases() {
    NOW.set(Some((Phase::Other, Instant::now())));
}

/// Ends the phase that this thread is in, begins another, and returns the first.
#[inline]
pub fn enter(phase: Phase) -> Phase {
    let Some((was, since)) = NOW.get() else {
        return Phase::Other;
    };
    let now = Instant::now();
    spend(was, now - since);
    NOW.set(Some((phase, now)));
    was
}

/// Takes time that this thread has waited out of its phase.
pub(crate) fn note_waited(time: Duration) {
    if let Some((phase, since)) = NOW.get() {
        spend(Phase::Waiting, time);
        NOW.set(Some((phase, since + time)));
    }
}

fn spend(phase: Phase, time: Duration) {
    SPENT[phase as usize].fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
}

/// How long a phase took so far, in all.
pub fn time_in(phase: Phase) -> Duration {
    Duration::from_nanos(SPENT[phase as usize].load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_for_the_phase_that_it_was_spent_in_and_waiting_for_none() {
        assert_eq!(enter(Phase::Forward), Phase::Other, "nobody asked");
        assert_eq!(time_in(Phase::Other), Duration::ZERO);
        begin_phases();
        let begin = Instant::now();
        enter(Phase::Backward);
        std::thread::sleep(Duration::from_millis(30));
        note_waited(Duration::from_millis(20));
        assert_eq!(enter(Phase::Other), Phase::Backward);
        let (backward, whole) = (time_in(Phase::Backward), begin.elapsed());
        assert!(backward >= Duration::from_millis(10), "{backward:?}");
        assert!(
            backward + Duration::from_millis(20) <= whole,
            "{backward:?} {whole:?}"
        );
        assert_eq!(time_in(Phase::Waiting), Duration::from_millis(20));
    }
}
