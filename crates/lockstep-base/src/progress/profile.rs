//! A profile: what each thread did, and when.
//!
//! It is made of the same changes from one phase, layer or part to the next that phases are summed up by. While none is
//! made, nothing is kept.

use super::phase::{self, Activity};
use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The most that is kept of a thread: a few hundred steps of a network of a hundred layers.
const MOST_SPANS: usize = 200_000;

static IS_MADE: AtomicBool = AtomicBool::new(false);

/// All threads that have ever added to a profile.
static THREADS: Mutex<Vec<Arc<ThreadSpans>>> = Mutex::new(Vec::new());

/// The names of layers.
static NAMES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A name, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Label(u32);

impl Label {
    /// No name.
    pub const NONE: Self = Self(0);

    /// The label of a name. Equal names have the same.
    pub fn of(name: &str) -> Self {
        let mut names = unpoisoned(&NAMES);
        let known = names.iter().position(|known| known == name);
        let at = known.unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        });
        Self(at as u32 + 1)
    }

    /// The name; empty if there is none.
    pub fn name(self) -> String {
        let names = unpoisoned(&NAMES);
        let name = (self.0 as usize)
            .checked_sub(1)
            .and_then(|at| names.get(at));
        name.cloned().unwrap_or_default()
    }
}

/// What a thread did for some time.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// What.
    pub activity: Activity,
    /// From when.
    pub begin: Instant,
    /// Until when.
    pub end: Instant,
}

/// What a thread did while a profile was made.
#[derive(Debug)]
pub struct ThreadProfile {
    /// The name of the thread.
    pub thread: String,
    /// One after the other.
    pub spans: Vec<Span>,
}

struct ThreadSpans {
    thread: String,
    spans: Mutex<Vec<Span>>,
}

thread_local! {
    static OWN: OnceCell<Arc<ThreadSpans>> = const { OnceCell::new() };
}

/// The lock is held to push, take or look something up: its holder never panics.
fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins a profile of this thread and of those that help it.
pub fn begin_profile() {
    phase::begin(false);
    IS_MADE.store(true, Ordering::Relaxed);
}

/// Whether a profile is made.
#[inline]
pub(super) fn is_made() -> bool {
    IS_MADE.load(Ordering::Relaxed)
}

/// Ends the profile, and returns what the threads did, in the order in which they began.
pub fn end_profile() -> Vec<ThreadProfile> {
    IS_MADE.store(false, Ordering::Relaxed);
    let threads = unpoisoned(&THREADS);
    let threads = threads.iter().map(|thread| ThreadProfile {
        thread: thread.thread.clone(),
        spans: std::mem::take(&mut unpoisoned(&thread.spans)),
    });
    threads.filter(|thread| !thread.spans.is_empty()).collect()
}

/// Adds what this thread did.
#[inline]
pub(super) fn add(span: Span) {
    if is_made() {
        OWN.with(|own| {
            let mut spans = unpoisoned(&own.get_or_init(begin_thread).spans);
            if spans.len() < MOST_SPANS {
                spans.push(span);
            }
        });
    }
}

fn begin_thread() -> Arc<ThreadSpans> {
    let own = Arc::new(ThreadSpans {
        thread: std::thread::current().name().unwrap_or("").to_owned(),
        spans: Mutex::default(),
    });
    unpoisoned(&THREADS).push(own.clone());
    own
}

#[cfg(test)]
mod tests {
    use super::super::{Phase, activity, enter, enter_layer, enter_part, join, leave};
    use super::*;

    #[test]
    fn what_a_thread_and_its_helpers_do_is_told_by_layer_and_part() {
        let layer = Label::of("conv1");
        assert_eq!(
            (Label::of("conv1"), layer.name()),
            (layer, "conv1".to_owned())
        );
        let words = |thread: &ThreadProfile| {
            let words = thread.spans.iter().map(|span| {
                assert!(span.begin <= span.end);
                let Activity { phase, layer, part } = span.activity;
                format!("{} {} {part}", phase.word(), layer.name())
            });
            words.collect::<Vec<_>>()
        };
        enter(Phase::Forward);
        begin_profile();
        enter(Phase::Forward);
        assert_eq!(enter_layer(layer), Label::NONE);
        let helped = activity();
        std::thread::Builder::new()
            .name("helper".to_owned())
            .spawn(move || {
                join(helped);
                assert_eq!(enter(Phase::Update), Phase::Forward);
                leave();
                assert_eq!(activity(), None);
            })
            .unwrap()
            .join()
            .unwrap();
        enter_part("transform");
        enter_part("");
        enter_layer(Label::NONE);
        enter(Phase::Other);
        let profile = end_profile();
        let helper = profile
            .iter()
            .find(|thread| thread.thread == "helper")
            .unwrap();
        assert_eq!(words(helper), ["forward conv1 ", "update conv1 "]);
        // Other tests may measure their own threads meanwhile.
        let name = std::thread::current().name().unwrap_or("").to_owned();
        let own = profile.iter().find(|thread| thread.thread == name).unwrap();
        let expected = [
            "other  ",
            "forward  ",
            "forward conv1 ",
            "forward conv1 transform",
            "forward conv1 ",
            "forward  ",
        ];
        assert_eq!(words(own), expected);
        enter(Phase::Forward);
        assert!(end_profile().is_empty(), "nothing is kept after the end");
    }
}
