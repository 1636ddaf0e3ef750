//! Marks of the parameters, step by step: what a later run of the same job is held against.
//!
//! After every step rank 0 looks at a few numbers of each tensor, at places that are a function of the step, and
//! keeps 32 bits of what it finds; the loss of the first lane comes with them. That is some microseconds. A
//! first dense layer may be kept by whoever computes its columns, so its numbers are not looked at; what changes
//! there shows in the next step's loss. At the end of an epoch, where every rank has everything, each tensor is
//! hashed whole.

use lockstep_events::{TraceLine, TraceMarks};
use lockstep_nn::{DeviceState, Layout};
use std::fmt::Write;
use std::ops::Range;
use std::time::{Duration, Instant};
use twox_hash::XxHash64;

/// Numbers of a tensor that are looked at after a step.
const LOOKS: u64 = 4;

/// Hexadecimal digits of a mark.
const DIGITS: usize = 8;

/// Characters of all marks of a run: if they would be more, not every step is marked.
const MOST: u64 = 8 << 20;

/// Characters that are sent at a time at most, and the time that they wait at most.
const PIECE: usize = 16 << 10;
const INTERVAL: Duration = Duration::from_secs(1);

/// Marks steps, and hands out what is to be told.
pub(super) struct Tracer {
    names: Vec<String>,
    tensors: Vec<Range<usize>>,
    /// Which tensors are looked at after every step.
    looked_at: Vec<bool>,
    every: u64,
    pending: Option<TraceMarks>,
    since: Instant,
}

impl Tracer {
    /// For a run of so many steps.
    pub(super) fn new(layout: &Layout, steps: u64) -> Self {
        let kept = layout.first_dense.map(|first| {
            let chunks = layout.factored[first].chunks.clone();
            layout.chunks[chunks.start].start..layout.chunks[chunks.end - 1].end
        });
        let is_kept = |range: &Range<usize>| {
            let meets = |kept: &Range<usize>| range.start < kept.end && kept.start < range.end;
            kept.as_ref().is_some_and(meets)
        };
        let ranges = layout.tensors.iter().map(|tensor| tensor.range.clone());
        let characters = steps * (layout.tensors.len() as u64 + 1) * DIGITS as u64;
        Self {
            names: (layout.tensors.iter())
                .map(|tensor| tensor.name.clone())
                .collect(),
            looked_at: ranges.clone().map(|range| !is_kept(&range)).collect(),
            tensors: ranges.collect(),
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

    /// Marks the state after `step`, counted from 1, whose first lane had this loss. Returns what is to be told,
    /// if it is time.
    pub(super) fn step(
        &mut self,
        step: u64,
        loss: f64,
        state: &mut impl DeviceState,
    ) -> Option<TraceLine> {
        if !step.is_multiple_of(self.every) {
            return None;
        }
        let every = self.every;
        let pending = self.pending.get_or_insert_with(|| TraceMarks {
            step,
            every,
            marks: String::with_capacity(PIECE + DIGITS * (1 + self.tensors.len())),
        });
        let loss = loss.to_bits();
        write_mark(&mut pending.marks, (loss ^ (loss >> 32)) as u32);
        for (tensor, range) in self.tensors.iter().enumerate() {
            let mut mark = 0u32;
            if self.looked_at[tensor] && !range.is_empty() {
                for look in 0..LOOKS {
                    let place = place(step, tensor as u64, look, range.len() as u64);
                    let at = range.start + place as usize;
                    let bits = state.read(at..at + 1)[0].to_bits();
                    mark = mark
                        .rotate_left(7)
                        .wrapping_add(bits)
                        .wrapping_mul(0x9e37_79b1);
                }
            }
            write_mark(&mut pending.marks, mark);
        }
        match pending.marks.len() >= PIECE || self.since.elapsed() >= INTERVAL {
            true => self.flush(),
            false => None,
        }
    }

    /// What was not told yet.
    pub(super) fn flush(&mut self) -> Option<TraceLine> {
        self.since = Instant::now();
        self.pending.take().map(TraceLine::Marks)
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

/// Which number of a tensor is looked at.
fn place(step: u64, tensor: u64, look: u64, len: u64) -> u64 {
    let mut x = step
        .wrapping_mul(LOOKS)
        .wrapping_add(look)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ tensor.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (x ^ (x >> 32)) % len
}

fn write_mark(marks: &mut String, mark: u32) {
    // Writing to a string does not fail.
    let _ = write!(marks, "{mark:08x}");
}
