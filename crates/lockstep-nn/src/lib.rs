//! Layers, losses and optimizers on flat vectors.
//!
//! A model is a function on flat vectors: `gradient(state, batch, step) -> loss`, where the state is one
//! contiguous `[f32]` of all parameters and running statistics. Shapes are fixed when a model is built,
//! every buffer is planned once, and no step allocates. The backward pass finishes the gradient chunk by
//! chunk, from the back of the vector to the front, and hands each to a [`Replica`], which may exchange
//! and update it while it is still in cache.
//!
//! Numerics are part of the interface: the same inputs give the same bits on every machine and at every
//! vector width. Sums run in a fixed order, elementary functions are our own ([`math`]), and random draws
//! are functions of (seed, step, sample).

mod buffer;
mod factors;
pub mod gemm;
mod init;
mod layers;
mod layout;
mod loss;
pub mod math;
mod model;
pub mod optimizer;
mod replica;
mod schedule;
pub mod simd;
pub mod threads;

pub use buffer::Buffer;
pub use factors::{Factored, add};
pub use layers::Step;
pub use layers::batch_norm::MOMENTUM as STATISTICS_SHARE;
pub use layout::{CHUNK, Layout, Order, Role, Tensor};
pub use loss::LossSum;
pub use model::{Batch, LayerSpec, LayerSummary, Model};
pub use optimizer::{Optimizer, Update};
pub use replica::{Collect, Replica};
pub use schedule::{Decay, Schedule};

/// Why a model cannot be built.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NnError {
    /// A dense layer without outputs.
    #[error("layer {layer} is linear with 0 outputs; it needs at least 1")]
    NoOutputs {
        /// Which layer, counted from 0.
        layer: usize,
    },
    /// A dropout share that is none.
    #[error("layer {layer} drops with probability {found}; it must be at least 0 and below 1")]
    Probability {
        /// Which layer, counted from 0.
        layer: usize,
        /// The probability asked for.
        found: f32,
    },
    /// More layers than dropout can tell apart.
    #[error("the model has {found} layers; at most 256 are supported")]
    TooManyLayers {
        /// How many there are.
        found: usize,
    },
    /// A stack that does not end in logits.
    #[error("the last layer must be linear: its outputs are the classes' scores")]
    NoLastLinear,
}
