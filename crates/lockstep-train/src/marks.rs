//! Where the parameters are looked at after a step, and the 32 bits that are kept of what is found there.
//!
//! A few numbers of each tensor are looked at, at places that are a function of the step. A first dense layer may be kept
//! by whoever computes its columns, so its numbers are not looked at; what changes there shows in the next step's loss.

use lockstep_nn::Layout;
use std::ops::Range;

/// Numbers of a tensor that are looked at after a step.
pub(crate) const LOOKS: u64 = 4;

/// The tensors of a network, and which of them are looked at.
#[derive(Debug, Clone)]
pub(crate) struct MarkedPlaces {
    tensors: Vec<Range<usize>>,
    looked_at: Vec<bool>,
}

impl MarkedPlaces {
    pub(crate) fn new(layout: &Layout) -> Self {
        let kept = layout.first_dense.map(|first| {
            let chunks = layout.factored[first].chunks.clone();
            layout.chunks[chunks.start].start..layout.chunks[chunks.end - 1].end
        });
        let is_kept = |range: &Range<usize>| {
            let meets = |kept: &Range<usize>| range.start < kept.end && kept.start < range.end;
            kept.as_ref().is_some_and(meets)
        };
        let ranges = layout.tensors.iter().map(|tensor| tensor.range.clone());
        Self {
            looked_at: ranges.clone().map(|range| !is_kept(&range)).collect(),
            tensors: ranges.collect(),
        }
    }

    /// The tensors.
    pub(crate) fn tensors(&self) -> &[Range<usize>] {
        &self.tensors
    }

    /// The mark of a loss.
    pub(crate) fn of_loss(loss: f64) -> u32 {
        let bits = loss.to_bits();
        (bits ^ (bits >> 32)) as u32
    }

    /// Appends the marks of all tensors after `step`, counted from 1.
    pub(crate) fn look(&self, step: u64, values: &[f32], marks: &mut Vec<u32>) {
        for (tensor, range) in self.tensors.iter().enumerate() {
            let mut mark = 0u32;
            if self.looked_at[tensor] && !range.is_empty() {
                for look in 0..LOOKS {
                    let place = place(step, tensor as u64, look, range.len() as u64);
                    let bits = values[range.start + place as usize].to_bits();
                    mark = mark
                        .rotate_left(7)
                        .wrapping_add(bits)
                        .wrapping_mul(0x9e37_79b1);
                }
            }
            marks.push(mark);
        }
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
