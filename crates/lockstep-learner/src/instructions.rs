//! What the thread that hears the coordinator hands to the one that trains.

use crate::Wish;
use crate::shared::SharedValues;
use lockstep_gang::AbortSwitch;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

/// What the coordinator asked for, and the switch that ends a wait.
#[derive(Default)]
pub(crate) struct Instructions {
    /// A stop was asked for: finish the step, write the state, and end.
    stop: AtomicBool,
    /// The last generation that is to pause after its step.
    pause: AtomicU16,
    work: Mutex<Work>,
    /// What the workers share with each other.
    pub(crate) shared: SharedValues,
}

#[derive(Default)]
struct Work {
    /// The generation that works here, and what calls it off.
    current: Option<(u16, AbortSwitch)>,
    /// The last generation that was called off.
    called_off: u16,
    /// How far the gang's work was when the coordinator last said it.
    progress: u64,
}

impl Work {
    fn obey(&self) {
        if let Some((generation, abort)) = &self.current
            && *generation <= self.called_off
        {
            abort.abort();
        }
    }
}

impl Instructions {
    pub(crate) fn ask_to_stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// `generation` is to pause after its step.
    pub(crate) fn ask_to_pause(&self, generation: u16) {
        self.pause.fetch_max(generation, Ordering::Relaxed);
    }

    /// What `generation` is asked to do after its step.
    pub(crate) fn wish(&self, generation: u16) -> Wish {
        if self.stop.load(Ordering::Relaxed) {
            Wish::Stop
        } else if self.pause.load(Ordering::Relaxed) >= generation {
            Wish::Pause
        } else {
            Wish::GoOn
        }
    }

    /// A generation begins to work. It may have been called off already.
    pub(crate) fn register(&self, generation: u16, abort: AbortSwitch) {
        let mut work = self.work.lock().expect("no holder of this lock panics");
        work.current = Some((generation, abort));
        work.obey();
    }

    /// The coordinator says how far the work of the whole gang is. While it gets on, waits go on too.
    pub(crate) fn gets_on(&self, progress: u64) {
        let mut work = self.work.lock().expect("no holder of this lock panics");
        if std::mem::replace(&mut work.progress, progress) != progress
            && let Some((_, abort)) = &work.current
        {
            abort.renew();
        }
    }

    /// Ends the waits of `generation` and of those before it.
    pub(crate) fn call_off(&self, generation: u16) {
        let mut work = self.work.lock().expect("no holder of this lock panics");
        work.called_off = work.called_off.max(generation);
        work.obey();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_for_one_generation_and_a_stop_for_all() {
        let instructions = Instructions::default();
        assert_eq!(instructions.wish(1), Wish::GoOn);
        instructions.ask_to_pause(1);
        assert_eq!(
            [1, 2].map(|g| instructions.wish(g)),
            [Wish::Pause, Wish::GoOn]
        );
        instructions.ask_to_stop();
        assert_eq!([1, 2].map(|g| instructions.wish(g)), [Wish::Stop; 2]);
    }

    #[test]
    fn a_generation_is_called_off_also_when_it_begins_later_but_the_next_is_not() {
        let instructions = Instructions::default();
        let [first, second] = [AbortSwitch::default(), AbortSwitch::default()];
        instructions.call_off(1);
        instructions.register(1, first.clone());
        assert!(first.is_aborted());
        instructions.register(2, second.clone());
        assert!(!second.is_aborted());
        instructions.call_off(1);
        assert!(!second.is_aborted());
        instructions.call_off(2);
        assert!(second.is_aborted());
    }
}
