//! Marks of the parameters, step by step: what a later run of the same job is held against.
//!
//! After every step rank 0 keeps 32 bits of a few numbers of each tensor ([`MarkedPlaces`]); the loss of the first lane
//! comes with them. That is some microseconds. At the end of an epoch, where every rank has everything, each tensor is
//! hashed whole.

use crate::marks::MarkedPlaces;
use lockstep_events::{TraceLine, TraceMarks};
use lockstep_nn::Layout;
use std::fmt::Write;
use std::ops::Range;
use std::time::{Duration, Instant};
use twox_hash::XxHash64;

/// Hexadecimal digits of a mark.
const DIGITS: usize = 8;

/// Characters of all marks of a run: if they would be more, not every step is marked.
const MOST: u64 = 8 << 20;

/// Characters that are sent at a time at most, and the time that they wait at most.
const PIECE: usize = 16 << 10;
const INTERVAL: Duration = Duration::from_secs(1);

/// Says which steps are marked, and puts into words what was found.
pub(super) struct Tracer {
    names: Vec<String>,
    tensors: Vec<Range<usize>>,
    every: u64,
    /// The first step whose marks were not told yet, and of how many steps there are some.
    pending: Option<(u64, usize)>,
    since: Instant,
}

impl Tracer {
    /// For a run of so many steps.
    pub(super) fn new(layout: &Layout, marked: &MarkedPlaces, steps: u64) -> Self {
        let characters = steps * (layout.tensors.len() as u64 + 1) * DIGITS as u64;
        let names = layout.tensors.iter().map(|tensor| tensor.name.clone());
        Self {
            names: names.collect(),
            tensors: marked.tensors().to_vec(),
            every: characters.div_ceil(MOST).max(1),
            pending: None,
            since: Instant::now(),
        }
    }

    /// What the marks are of.
    pub(super) fn begin(&self) -> TraceLine {
        let tensors = self.names.clone();
        TraceLine::Tensors { tensors }
    }

    /// Whether `step`, counted from 1, is marked, which then counts as done.
    pub(super) fn is_marked(&mut self, step: u64) -> bool {
        let is_due = step.is_multiple_of(self.every);
        if is_due {
            self.pending.get_or_insert((step, 0)).1 += 1;
        }
        is_due
    }

    /// Whether it is time to tell what was found.
    pub(super) fn is_full(&self) -> bool {
        let steps = self.pending.map_or(0, |(_, steps)| steps);
        let characters = steps * DIGITS * (1 + self.tensors.len());
        steps > 0 && (characters >= PIECE || self.since.elapsed() >= INTERVAL)
    }

    /// What is told of the marks that were found since the last time.
    pub(super) fn tell(&mut self, marks: &[u32]) -> Option<TraceLine> {
        self.since = Instant::now();
        let (step, _) = self.pending.take()?;
        let mut words = String::with_capacity(DIGITS * marks.len());
        for mark in marks {
            // Writing to a string does not fail.
            let _ = write!(words, "{mark:08x}");
        }
        Some(TraceLine::Marks(TraceMarks {
            step,
            every: self.every,
            marks: words,
        }))
    }

    /// The whole state after `step`.
    pub(super) fn whole(&self, step: u64, state: &[f32]) -> TraceLine {
        let hash = |range: &Range<usize>| {
            let numbers = &state[range.clone()];
            let mut hasher = XxHash64::with_seed(0);
            let mut bytes = [0; 4096];
            for part in numbers.chunks(bytes.len() / 4) {
                for (bytes, number) in bytes.chunks_exact_mut(4).zip(part) {
                    bytes.copy_from_slice(&number.to_le_bytes());
                }
                std::hash::Hasher::write(&mut hasher, &bytes[..4 * part.len()]);
            }
            format!("{:016x}", std::hash::Hasher::finish(&hasher))
        };
        let whole = self.tensors.iter().map(hash).collect();
        TraceLine::Whole { step, whole }
    }
}
