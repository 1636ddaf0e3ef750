//! A script's part of a data set, batch after batch.

use super::batches::{BatchIterator, Work};
use super::layout::BatchLayout;
use super::report::Handed;
use super::{Refusal, Service};
use crate::ScriptError;
use crate::checkpoints::Header;
use crate::order::{Position, steps};
use crate::sets::{OpenSet, ScriptSets};
use lockstep_data::EpochOrder;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Batches that are made before they are asked for, at most.
const MOST_PREFETCHED: usize = 64;

/// What a script asks of a data set.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ShardRequest {
    name: String,
    /// Samples in a batch of this rank.
    batch: Option<usize>,
    #[serde(default = "yes")]
    shuffle: bool,
    #[serde(default)]
    drop_last: bool,
    #[serde(default)]
    prefetch: usize,
}

fn yes() -> bool {
    true
}

/// All data sets that the script has asked for in this generation.
#[derive(Default)]
pub(crate) struct Shards {
    sets: HashMap<String, SetState>,
    iterators: HashMap<u64, Arc<BatchIterator>>,
    opened: u64,
    /// Where each set was when the checkpoint was written that the generation began from.
    resumed: BTreeMap<String, Position>,
}

struct SetState {
    open: Arc<OpenSet>,
    position: Position,
    batch: usize,
    iterator: Option<Arc<BatchIterator>>,
}

impl Shards {
    /// Goes on where a checkpoint was written.
    pub(crate) fn resumed(header: Option<&Header>) -> Self {
        Self {
            resumed: header
                .map(|header| header.positions.clone())
                .unwrap_or_default(),
            ..Self::default()
        }
    }

    pub(super) fn open(
        &mut self,
        asked: &ShardRequest,
        service: &Service<'_>,
    ) -> Result<Value, Refusal> {
        let part = service.part;
        let batch = asked.batch.unwrap_or(part.settings.batch);
        if batch == 0 || batch > 1 << 24 {
            return Err(Refusal::new(format!(
                "batch_size is {batch}; it must be at least 1"
            )));
        }
        let known = part.sets.names();
        let state = match self.sets.get_mut(&asked.name) {
            Some(state) => {
                // Each iterator is an epoch.
                state.position = match state.iterator.take() {
                    Some(before) => {
                        before.close();
                        next_epoch(&state.position)
                    }
                    None => state.position.clone(),
                };
                state
            }
            None => {
                let open = part.sets.open(&asked.name, part.settings.seed)?;
                let open = open.ok_or_else(|| {
                    let there = match known.is_empty() {
                        true => "the job has no [data]".to_owned(),
                        false => format!("there are {}", known.join(", ")),
                    };
                    Refusal::new(format!("there is no data set {:?}; {there}", asked.name))
                })?;
                let position = self.resumed.get(&asked.name).cloned().unwrap_or_default();
                let state = SetState {
                    open: Arc::new(open),
                    position,
                    batch,
                    iterator: None,
                };
                self.sets.entry(asked.name.clone()).or_insert(state)
            }
        };
        state.batch = batch;
        let indices = state.open.indices.clone();
        let order = match asked.shuffle {
            true => EpochOrder::of_subset(part.settings.seed, state.position.epoch, indices)
                .indices()
                .to_vec(),
            false => indices,
        };
        let order = state.position.left(order);
        let placing = &service.placing;
        let work = Work {
            set: state.open.clone(),
            steps: steps(&order, batch, placing.workers, asked.drop_last),
            order,
            batch,
            rank: placing.rank,
            workers: placing.workers,
        };
        let left = work.order.len();
        let layout = BatchLayout::new(&state.open.data, work.batches())?;
        let columns = layout.described(&state.open.data);
        let prefetch = asked.prefetch.clamp(1, MOST_PREFETCHED);
        let iterator = BatchIterator::start(work, layout, prefetch)?;
        state.iterator = Some(iterator.clone());
        self.opened += 1;
        let (path, bytes) = iterator.memory();
        self.iterators.insert(self.opened, iterator);
        Ok(json!({
            "iterator": self.opened,
            "path": path,
            "slot_bytes": bytes,
            "columns": columns,
            "samples_left": left,
        }))
    }

    pub(super) fn iterator(&self, number: u64) -> Result<Arc<BatchIterator>, Refusal> {
        let found = self.iterators.get(&number).cloned();
        found.ok_or_else(|| Refusal::new(format!("there is no iterator {number}")))
    }

    pub(super) fn close(&mut self, number: u64) {
        if let Some(iterator) = self.iterators.remove(&number) {
            iterator.close();
        }
    }

    pub(super) fn close_all(&mut self) {
        for (_, iterator) in self.iterators.drain() {
            iterator.close();
        }
    }

    /// How far each set was handed out to this rank.
    pub(super) fn handed(&self) -> BTreeMap<String, Handed> {
        let of = |state: &SetState| {
            let (batches, ended) = state.iterator.as_ref().map_or((0, false), |it| it.handed());
            let (before, batches) = match ended {
                true => (next_epoch(&state.position), 0),
                false => (state.position.clone(), batches),
            };
            Handed {
                before,
                batch: state.batch,
                batches,
            }
        };
        let mut all: BTreeMap<String, Handed> = self
            .sets
            .iter()
            .map(|(name, state)| (name.clone(), of(state)))
            .collect();
        // What this generation has not asked for is where it was.
        for (name, position) in &self.resumed {
            all.entry(name.clone()).or_insert_with(|| Handed {
                before: position.clone(),
                batch: 1,
                batches: 0,
            });
        }
        all
    }
}

fn next_epoch(position: &Position) -> Position {
    Position {
        epoch: position.epoch + 1,
        parts: Vec::new(),
    }
}

/// What a script should know of a set before it asks for batches.
pub(super) fn describe(sets: &ScriptSets, name: &str, seed: u64) -> Result<Value, ScriptError> {
    let Some(open) = sets.open(name, seed)? else {
        return Ok(Value::Null);
    };
    Ok(json!({
        "samples": open.indices.len(),
        "columns": BatchLayout::new(&open.data, std::iter::once(&[][..]))?.described(&open.data),
        "classes": open.data.classes(),
    }))
}
