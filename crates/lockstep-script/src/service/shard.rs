//! A script's part of a data set, batch after batch.

use super::report::Handed;
use super::slots::Slots;
use super::{Refusal, Service, lock};
use crate::ScriptError;
use crate::checkpoints::Header;
use crate::order::{Position, rows, steps};
use crate::sets::{OpenSet, ScriptSets};
use lockstep_data::{Dataset, EpochOrder, TargetKind, TargetScale};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Columns begin at multiples of this in a slot, so that every kind of number is aligned.
const ALIGNED: usize = 64;
/// Batches that are made before they are asked for, at most.
const MOST_PREFETCHED: usize = 64;

/// What a script asks of a data set.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Asked {
    name: String,
    /// Samples in a batch of this rank.
    #[serde(default)]
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

    pub(super) fn open(&mut self, asked: &Asked, service: &Service<'_>) -> Result<Value, Refusal> {
        let part = service.part;
        let batch = asked.batch.unwrap_or(part.train.batch);
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
                let open = part.sets.open(&asked.name, part.train.seed)?;
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
            true => EpochOrder::of_subset(part.train.seed, state.position.epoch, indices)
                .indices()
                .to_vec(),
            false => indices,
        };
        let order = state.position.left(order);
        let placing = &service.placing;
        let work = Work {
            set: state.open.clone(),
            steps: steps(&order, batch, placing.workers, asked.drop_last),
            left: order.len(),
            order,
            batch,
            rank: placing.rank,
            workers: placing.workers,
        };
        let left = work.left;
        let columns = Columns::of(&state.open.set, batch);
        let iterator =
            BatchIterator::start(work, &columns, asked.prefetch.clamp(1, MOST_PREFETCHED))?;
        state.iterator = Some(iterator.clone());
        self.opened += 1;
        let (path, bytes) = iterator.memory();
        self.iterators.insert(self.opened, iterator);
        Ok(json!({
            "iterator": self.opened,
            "path": path,
            "slot_bytes": bytes,
            "columns": columns.described(),
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
        "columns": Columns::of(&open.set, 1).described(),
        "classes": match open.set.target_kind() {
            TargetKind::Classes => open.set.class_names(),
            _ => &[],
        },
    }))
}

/// How the columns of a batch lie in a slot.
struct Columns {
    samples: Vec<usize>,
    /// What is to be predicted of a sample: a class, or numbers.
    target: Option<Vec<usize>>,
    /// Where the targets begin.
    targets_at: usize,
    bytes: usize,
}

impl Columns {
    fn of(set: &Dataset, batch: usize) -> Self {
        let [channels, height, width] = set.shape();
        let samples = match (height, width) {
            (1, 1) => vec![channels],
            _ => vec![height, width, channels],
        };
        let targets_at = (batch * set.sample_len() * 4).next_multiple_of(ALIGNED);
        let target = set.is_labelled().then(|| match set.target_kind() {
            TargetKind::Classes => Vec::new(),
            _ => vec![set.outputs()],
        });
        let bytes = match &target {
            None => 0,
            Some(shape) if shape.is_empty() => batch * 8,
            Some(shape) => batch * shape[0] * 4,
        };
        Self {
            samples,
            target,
            targets_at,
            bytes: targets_at + bytes,
        }
    }

    fn described(&self) -> Value {
        let name = match self.samples.len() {
            1 => "features",
            _ => "image",
        };
        let mut columns = vec![json!({
            "name": name, "dtype": "float32", "shape": self.samples, "offset": 0,
        })];
        if let Some(shape) = &self.target {
            let dtype = if shape.is_empty() { "int64" } else { "float32" };
            columns.push(json!({
                "name": "label", "dtype": dtype, "shape": shape, "offset": self.targets_at,
            }));
        }
        Value::Array(columns)
    }
}

/// Which batches to make.
struct Work {
    set: Arc<OpenSet>,
    order: Vec<u32>,
    left: usize,
    steps: u64,
    batch: usize,
    rank: usize,
    workers: usize,
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
    fn start(work: Work, columns: &Columns, prefetch: usize) -> Result<Arc<Self>, ScriptError> {
        let iterator = Arc::new(Self {
            state: Mutex::new(IteratorState {
                slots: Slots::new(columns.bytes)?,
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
        let (maker, targets_at) = (iterator.clone(), columns.targets_at);
        let thread = std::thread::Builder::new().name("batches".into());
        thread
            .spawn(move || maker.make(&work, targets_at))
            .map_err(ScriptError::system("start a thread"))?;
        Ok(iterator)
    }

    fn memory(&self) -> (String, usize) {
        let state = lock(&self.state);
        (state.slots.path(), state.slots.bytes())
    }

    fn handed(&self) -> (u64, bool) {
        let state = lock(&self.state);
        (state.handed, state.ended)
    }

    fn close(&self) {
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
    fn make(&self, work: &Work, targets_at: usize) {
        for at in 0..work.steps {
            let rows = rows(&work.order, at, work.batch, work.rank, work.workers);
            if rows.is_empty() {
                break;
            }
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
            fill(&mut memory, targets_at, &work.set, rows);
            lock(&self.state).ready.push_back((slot, rows.len()));
            self.changed.notify_all();
        }
        lock(&self.state).made = true;
        self.changed.notify_all();
    }
}

/// Writes a batch into a slot.
fn fill(memory: &mut [u8], targets_at: usize, open: &OpenSet, rows: &[u32]) {
    let set = &open.set;
    let (samples, targets) = memory.split_at_mut(targets_at);
    let samples: &mut [f32] = bytemuck::cast_slice_mut(samples);
    let samples = &mut samples[..rows.len() * set.sample_len()];
    set.gather(rows, &open.normaliser, samples);
    if !set.is_labelled() {
        return;
    }
    match set.target_kind() {
        TargetKind::Classes => {
            let labels = set.labels();
            let targets = targets.as_chunks_mut::<8>().0;
            for (target, &row) in targets.iter_mut().zip(rows) {
                *target = i64::from(labels[row as usize]).to_le_bytes();
            }
        }
        _ => {
            let width = set.outputs();
            let bytes = rows.len() * width * 4;
            let numbers: &mut [f32] = bytemuck::cast_slice_mut(&mut targets[..bytes]);
            set.gather_numbers(rows, &TargetScale::identity(width), numbers);
        }
    }
}
