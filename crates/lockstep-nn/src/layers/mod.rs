//! A layer is one file: its settings with all that there is to know of its kind (`LayerKind`),
//! forward and backward beside each other, its tests at the foot.
//!
//! Layers that make a new activation implement `Layer`; those that only change one where it lies
//! implement `Pointwise` and cost no memory. Activations lie row by row, each row an image with its
//! channels innermost: `rows x height x width x channels`. A vector is an image of one pixel.

pub(crate) mod activation;
pub(crate) mod avg_pool;
pub(crate) mod batch_norm;
#[cfg(test)]
pub(crate) mod check;
pub(crate) mod columns;
mod conv1d;
pub(crate) mod conv2d;
pub(crate) mod conv_weights;
pub(crate) mod dropout;
pub(crate) mod embedding;
pub(crate) mod flatten;
pub(crate) mod gelu;
pub(crate) mod global_pool;
pub(crate) mod group_norm;
pub(crate) mod grouped;
pub(crate) mod input_copy;
pub(crate) mod linear;
pub(crate) mod max_pool;
mod pool;
pub(crate) mod relu;
pub(crate) mod residual;
pub(crate) mod window;

pub use activation::{LeakyRelu, Sigmoid, Silu, Tanh};
pub use avg_pool::{AvgPool, AvgPool1d};
pub use batch_norm::BatchNorm;
pub use conv1d::Conv1d;
pub use conv2d::Conv2d;
pub use dropout::Dropout;
pub use embedding::{Embedding, EmbeddingTable};
pub use flatten::{Flatten, Unflatten};
pub use gelu::Gelu;
pub use global_pool::GlobalPool;
pub use group_norm::{GroupNorm, LayerNorm};
pub use linear::Linear;
pub use max_pool::{MaxPool, MaxPool1d};
pub use relu::Relu;
pub use residual::Residual;

use crate::buffer::LINE;
use crate::init::Initial;
use crate::layout::Layout;
use crate::operation::Operation;
use crate::replica::Replica;
use crate::threads::Threads;
use std::ops::Range;

/// A pass over the layers: what for, and with what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pass<'a> {
    pub(crate) threads: &'a Threads,
    /// The training step. Without one it is an evaluation: no dropout, and running statistics instead of the batch's.
    pub(crate) step: Option<Step<'a>>,
    /// The rows of every lane, one after the other; none of them is empty.
    pub(crate) lanes: &'a [Range<usize>],
}

impl<'a> Pass<'a> {
    /// An evaluation.
    pub(crate) fn evaluation(threads: &'a Threads) -> Self {
        Self {
            threads,
            step: None,
            lanes: &[],
        }
    }

    /// Rows of the largest lane.
    pub(crate) fn largest_lane(&self) -> usize {
        self.lanes.iter().map(|rows| rows.len()).max().unwrap_or(0)
    }
}

/// The part of a vector that belongs to some rows, which have so many numbers each.
pub(crate) fn of_rows<'a>(x: &'a [f32], rows: &Range<usize>, width: usize) -> &'a [f32] {
    &x[rows.start * width..rows.end * width]
}

/// A training step as seen by the rows of a pass.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// The run's seed.
    pub seed: u64,
    /// Number of the step since the beginning of the run.
    pub number: u64,
    /// Which samples the rows are: random draws belong to a sample, not to a place.
    pub samples: &'a [u32],
    /// Rows of the whole batch, over all lanes: gradients are scaled by its inverse.
    pub batch: usize,
}

/// A layer whose output is a new activation.
pub(crate) trait Layer: Send {
    /// What it computes, for back ends that compute it elsewhere.
    fn operation(&self) -> Operation;

    /// Numbers of scratch memory that a pass of so many rows wants, forward or backward, in lanes of any size.
    fn scratch(&self, _threads: &Threads, _rows: usize) -> usize {
        0
    }

    /// Its number among the layout's dense layers, if it is one.
    fn dense(&self) -> Option<usize> {
        None
    }

    /// Bytes of the activations that it keeps inside.
    fn bytes(&self) -> usize {
        0
    }

    /// Computes `y` from `x`. Neither `y` nor `scratch` hold anything of meaning before.
    fn forward(
        &mut self,
        pass: Pass<'_>,
        state: &[f32],
        x: &[f32],
        y: &mut [f32],
        scratch: &mut [f32],
    );

    /// Appends its running statistics to the layout, and how they begin, once all parameters are there.
    fn place_statistics(&mut self, _layout: &mut Layout, _initial: &mut Vec<Initial>) {}

    /// Hands out what it observed in the forward pass: the chunks of its running statistics.
    fn statistics(&mut self, _pass: Pass<'_>, _replica: &mut dyn Replica) {}

    /// Computes `dx` from `dy` if it is wanted, then hands out the gradient of its parameters, lane by lane. `dy` may
    /// be overwritten.
    fn backward(
        &mut self,
        pass: Pass<'_>,
        replica: &mut dyn Replica,
        x: &[f32],
        dy: &mut [f32],
        dx: Option<&mut [f32]>,
        scratch: &mut [f32],
    );
}

/// A layer without parameters: its output and its gradients are functions of its input alone.
pub(crate) trait Parameterless: Send {
    /// What it computes, for back ends that compute it elsewhere.
    fn operation(&self) -> Operation;

    /// Computes `y` from `x`.
    fn forward(&mut self, threads: &Threads, x: &[f32], y: &mut [f32]);

    /// Computes `dx` from `dy`.
    fn input_gradient(&mut self, threads: &Threads, x: &[f32], dy: &[f32], dx: &mut [f32]);

    /// Bytes of what it keeps for the way back.
    fn bytes(&self) -> usize {
        0
    }
}

impl<L: Parameterless> Layer for L {
    fn operation(&self) -> Operation {
        Parameterless::operation(self)
    }

    fn bytes(&self) -> usize {
        Parameterless::bytes(self)
    }

    fn forward(&mut self, pass: Pass<'_>, _: &[f32], x: &[f32], y: &mut [f32], _: &mut [f32]) {
        Parameterless::forward(self, pass.threads, x, y);
    }

    fn backward(
        &mut self,
        pass: Pass<'_>,
        _: &mut dyn Replica,
        x: &[f32],
        dy: &mut [f32],
        dx: Option<&mut [f32]>,
        _: &mut [f32],
    ) {
        if let Some(dx) = dx {
            self.input_gradient(pass.threads, x, dy, dx);
        }
    }
}

/// A layer that changes an activation in place.
pub(crate) trait Pointwise: Send {
    /// What it computes, for back ends that compute it elsewhere.
    fn operation(&self) -> Operation;

    /// Changes `y`.
    fn forward(&mut self, pass: Pass<'_>, y: &mut [f32]);

    /// Changes `dy`; `y` is the activation as the forward pass, this layer and any pointwise ones after
    /// it, left it.
    fn backward(&mut self, pass: Pass<'_>, y: &[f32], dy: &mut [f32]);
}

/// Cuts the first `len` numbers off scratch memory, so that what is left begins a cache line if it did.
pub(crate) fn carve(scratch: &mut [f32], len: usize) -> (&mut [f32], &mut [f32]) {
    let (part, rest) = scratch.split_at_mut(carved(len));
    (&mut part[..len], rest)
}

/// Numbers that [`carve`] takes for a part of this length.
pub(crate) fn carved(len: usize) -> usize {
    len.next_multiple_of(LINE)
}
