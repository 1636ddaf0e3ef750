//! What the thread that trains spends its time on.
//!
//! Looking at the clock takes some ten nanoseconds, and a step has hundreds of places to look: so nothing is measured
//! unless somebody asks for it ([`begin_phases`], [`begin_profile`](super::begin_profile)), and then of the thread alone that
//! asks, and of those that help it while a profile is made. Time that it waits for others is [`Phase::Waiting`], whatever
//! it waits within.

use super::profile::{self, Label, Span};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a step consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

impl Phase {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Data => "data",
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::Waiting => "wait",
            Self::Exchange => "exchange",
            Self::Update => "update",
        }
    }
}

/// Nanoseconds of each phase.
static SPENT: [AtomicU64; 7] = [const { AtomicU64::new(0) }; 7];

/// What a thread is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Activity {
    /// The phase of the step.
    pub phase: Phase,
    /// The layer that is computed, if one is.
    pub layer: Label,
    /// The part of the layer's work, if it has several.
    pub part: &'static str,
}

impl Activity {
    const OTHER: Self = Self {
        phase: Phase::Other,
        layer: Label::NONE,
        part: "",
    };
}

/// What a thread is doing, and since when.
#[derive(Clone, Copy)]
struct Now {
    activity: Activity,
    since: Instant,
    /// Whether its time counts for the phases; that of helpers does not.
    counts: bool,
}

thread_local! {
    /// What this thread is doing; none where nobody asked.
    static NOW: Cell<Option<Now>> = const { Cell::new(None) };
}

/// Measures the phases of this thread from now on.
pub fn begin_phases() {
    begin(true);
}

pub(super) fn begin(counts: bool) {
    NOW.set(Some(Now {
        activity: Activity::OTHER,
        since: Instant::now(),
        counts: counts || NOW.get().is_some_and(|now| now.counts),
    }));
}

/// What this thread is doing, if anybody asked.
#[inline]
pub fn activity() -> Option<Activity> {
    NOW.get().map(|now| now.activity)
}

/// Ends the phase that this thread is in, begins another, and returns the first.
#[inline]
pub fn enter(phase: Phase) -> Phase {
    change(|was| Activity { phase, ..was }).map_or(Phase::Other, |was| was.phase)
}

/// Says that this thread goes on with another layer, and returns the one before.
#[inline]
pub fn enter_layer(layer: Label) -> Label {
    change(|was| Activity { layer, ..was }).map_or(Label::NONE, |was| was.layer)
}

/// Says that this thread goes on with another part of a layer's work, and returns the one before. `""` is none.
#[inline]
pub fn enter_part(part: &'static str) -> &'static str {
    change(|was| Activity { part, ..was }).map_or("", |was| was.part)
}

/// Lets this thread help another one with what that one is doing, until [`leave`]. Only while a profile is made.
#[inline]
pub fn join(activity: Option<Activity>) {
    if let Some(activity) = activity.filter(|_| profile::is_made()) {
        NOW.set(Some(Now {
            activity,
            since: Instant::now(),
            counts: false,
        }));
    }
}

/// Ends what [`join`] began.
#[inline]
pub fn leave() {
    if NOW.get().is_some() {
        change(|_| Activity::OTHER);
        NOW.set(None);
    }
}

/// Ends what this thread is doing, and begins something else. Returns what ended, if anybody asked.
#[inline]
fn change(to: impl FnOnce(Activity) -> Activity) -> Option<Activity> {
    let now = NOW.get()?;
    let activity = to(now.activity);
    if activity != now.activity {
        let since = Instant::now();
        end(now, since);
        NOW.set(Some(Now {
            activity,
            since,
            ..now
        }));
    }
    Some(now.activity)
}

fn end(now: Now, until: Instant) {
    if now.counts {
        spend(now.activity.phase, until - now.since);
    }
    profile::add(Span {
        activity: now.activity,
        begin: now.since,
        end: until,
    });
}

/// Takes time that this thread has waited out of its phase.
pub(crate) fn note_waited(time: Duration) {
    if let Some(now) = NOW.get() {
        let until = Instant::now();
        let begin = until.checked_sub(time).unwrap_or(now.since).max(now.since);
        end(now, begin);
        let phase = Phase::Waiting;
        let waiting = Now {
            activity: Activity {
                phase,
                ..now.activity
            },
            since: begin,
            ..now
        };
        end(waiting, until);
        NOW.set(Some(Now {
            since: until,
            ..now
        }));
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
