//! Batches that are made ahead of the script, by a thread, in memory that it shares.

use super::layout::BatchLayout;
use super::slots::Slots;
use super::{Refusal, lock};
use crate::ScriptError;
use crate::order::rows;
use crate::sets::OpenSet;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Which batches to make.
pub(super) struct Work {
    pub(super) set: Arc<OpenSet>,
    pub(super) order: Vec<u32>,
    pub(super) steps: u64,
    pub(super) batch: usize,
    pub(super) rank: usize,
    pub(super) workers: usize,
}

impl Work {
    /// The samples of each batch.
    pub(super) fn batches(&self) -> impl Iterator<Item = &[u32]> {
        let rows = |at| rows(&self.order, at, self.batch, self.rank, self.workers);
        // On the last step there may not be a sample for every rank.
        (0..self.steps)
            .map(rows)
            .take_while(|rows| !rows.is_empty())
    }
}

/// Batches that a thread makes ahead of the script.
pub(crate) struct BatchIterator {
    state: Mutex<IteratorState>,
    changed: Condvar,
}

struct IteratorState {
    slots: Slots,
    ready: VecDeque<(usize, usize)>,
    prefetch: usize,
    handed: u64,
    /// All batches are made.
    made: bool,
    /// The script has seen the end.
    ended: bool,
    closed: bool,
    failed: Option<String>,
}

impl BatchIterator {
    pub(super) fn start(
        work: Work,
        layout: BatchLayout,
        prefetch: usize,
    ) -> Result<Arc<Self>, ScriptError> {
        let iterator = Arc::new(Self {
            state: Mutex::new(IteratorState {
                slots: Slots::new(layout.bytes())?,
                ready: VecDeque::new(),
                prefetch,
                handed: 0,
                made: false,
                ended: false,
                closed: false,
                failed: None,
            }),
            changed: Condvar::new(),
        });
        let maker = iterator.clone();
        let thread = std::thread::Builder::new().name("batches".into());
        thread
            .spawn(move || maker.make(&work, &layout))
            .map_err(ScriptError::system("start a thread"))?;
        Ok(iterator)
    }

    pub(super) fn memory(&self) -> (String, usize) {
        let state = lock(&self.state);
        (state.slots.path(), state.slots.bytes())
    }

    pub(super) fn handed(&self) -> (u64, bool) {
        let state = lock(&self.state);
        (state.handed, state.ended)
    }

    pub(super) fn close(&self) {
        lock(&self.state).closed = true;
        self.changed.notify_all();
    }

    /// The next batch, once it is made.
    pub(super) fn next(&self, free: &[usize]) -> Result<Value, Refusal> {
        let mut state = lock(&self.state);
        state.slots.give_back(free);
        loop {
            if let Some((slot, rows)) = state.ready.pop_front() {
                state.handed += 1;
                self.changed.notify_all();
                return Ok(json!({ "slot": slot, "rows": rows }));
            }
            if let Some(why) = &state.failed {
                return Err(Refusal::new(why.clone()));
            }
            if state.made || state.closed {
                state.ended |= state.made;
                return Ok(json!({ "end": true }));
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Makes all batches, not too far ahead.
    fn make(&self, work: &Work, layout: &BatchLayout) {
        for rows in work.batches() {
            let mut state = lock(&self.state);
            while state.ready.len() >= state.prefetch && !state.closed {
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            if state.closed {
                return;
            }
            let taken = state.slots.take();
            drop(state);
            let (slot, mut memory) = match taken {
                Ok(taken) => taken,
                Err(error) => {
                    lock(&self.state).failed = Some(error.to_string());
                    self.changed.notify_all();
                    return;
                }
            };
            layout.fill(&work.set.data, rows, &mut memory);
            lock(&self.state).ready.push_back((slot, rows.len()));
            self.changed.notify_all();
        }
        lock(&self.state).made = true;
        self.changed.notify_all();
    }
}
