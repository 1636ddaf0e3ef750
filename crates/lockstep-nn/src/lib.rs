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
mod build;
mod chain;
mod device;
mod dims;
pub mod encoder;
mod factors;
mod fingerprint;
pub mod gemm;
pub mod graph;
mod host;
mod init;
pub mod layers;
mod layout;
mod loss;
mod model;
pub mod optimizer;
mod rates;
mod replica;
mod schedule;
mod spec;
mod threads;
pub mod zoo;

use lockstep_base::{math, simd};

pub use buffer::Buffer;
pub use device::{DeviceState, Network, StatePart};
pub use dims::Dims;
pub use factors::{Factored, PANEL, add};
pub use fingerprint::fingerprint;
pub use host::HostState;
pub use layers::batch_norm::MOMENTUM as STATISTICS_SHARE;
pub use layers::{EmbeddingTable, Step};
pub use layout::{CHUNK, LAYOUT_VERSION, Layout, NumberOrder, Role, Tensor};
pub use loss::{Loss, LossSum, ShapedClasses, Targets, WeightedNumbers, sigmoid};
pub use model::{Batch, Model};
pub use optimizer::{Optimizer, Update};
pub use rates::{LayerRates, stands_for};
pub use replica::{Collect, Replica};
pub use schedule::{Decay, Schedule};
pub use spec::{LayerSpec, LayerSummary, NamedLayer};
pub use threads::Threads;

/// Why a model cannot be built.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NnError {
    /// A layer without outputs.
    #[error("layer {layer} has 0 outputs; it needs at least 1")]
    NoOutputs {
        /// Which layer.
        layer: String,
    },
    /// A dropout share that is none.
    #[error("layer {layer} drops with probability {found}; it must be at least 0 and below 1")]
    Probability {
        /// Which layer.
        layer: String,
        /// The probability asked for.
        found: f32,
    },
    /// More layers than dropout can tell apart.
    #[error("layer {layer} drops units after more than 255 other layers; put it before them")]
    TooManyLayers {
        /// Which layer.
        layer: String,
    },
    /// A residual layer without a body.
    #[error("layer {layer} is residual without layers in its body; it needs at least 1")]
    EmptyBody {
        /// Which layer.
        layer: String,
    },
    /// Two paths whose outputs cannot be added.
    #[error(
        "layer {layer} adds its body's {body} to its shortcut's {shortcut}; they must be the same shape"
    )]
    Paths {
        /// Which layer.
        layer: String,
        /// The shape of the body's output.
        body: Dims,
        /// The shape of the shortcut's.
        shortcut: Dims,
    },
    /// Windows without pixels, or that do not move.
    #[error(
        "layer {layer} has windows of {0} x {1} pixels, {2} x {3} apart; each number must be at least 1",
        kernel[0], kernel[1], stride[0], stride[1]
    )]
    NoWindow {
        /// Which layer.
        layer: String,
        /// Pixels of a window.
        kernel: [usize; 2],
        /// Pixels between windows.
        stride: [usize; 2],
    },
    /// Windows larger than what they slide over.
    #[error(
        "layer {layer} has windows of {0} x {1} pixels, but its input is {input} and has a margin of \
         {2} x {3}; {4}",
        kernel[0], kernel[1], padding[0], padding[1], room_for_windows(input)
    )]
    TooSmall {
        /// Which layer.
        layer: String,
        /// Pixels of a window.
        kernel: [usize; 2],
        /// Pixels of margin on each side.
        padding: [usize; 2],
        /// The shape of the input.
        input: Dims,
    },
    /// A pool whose windows may lie outside the image, or are too large to be told apart.
    #[error(
        "layer {layer} pools windows of {0} x {1} pixels with a margin of {2} x {3}; the margin may be \
         half a window, and a window {most} pixels",
        kernel[0], kernel[1], padding[0], padding[1], most = layers::max_pool::MAX_AREA
    )]
    Pool {
        /// Which layer.
        layer: String,
        /// Pixels of a window.
        kernel: [usize; 2],
        /// Pixels of margin on each side.
        padding: [usize; 2],
    },
    /// Groups that do not part their channels.
    #[error(
        "layer {layer} parts {channels} channels into {groups} groups; they must be parted evenly"
    )]
    Groups {
        /// Which layer.
        layer: String,
        /// The groups asked for.
        groups: usize,
        /// The channels of its input or output.
        channels: usize,
    },
    /// A convolution of sequences over something else.
    #[error(
        "layer {layer} convolves sequences, and its input is {input}; use `conv2d`, or put \
         `{{ kind = \"unflatten\", shape = [channels, length] }}` before it to read a row of numbers as a sequence"
    )]
    NoSequence {
        /// Which layer.
        layer: String,
        /// The shape of the input.
        input: Dims,
    },
    /// Rows that cannot be read as this shape.
    #[error(
        "layer {layer} reads rows as {shape}, which is {0} numbers, and its input is {input}",
        shape.len()
    )]
    Unflatten {
        /// Which layer.
        layer: String,
        /// The shape asked for.
        shape: Dims,
        /// The shape of the input.
        input: Dims,
    },
    /// Tables that there are no inputs for, or that are empty.
    #[error(
        "layer {layer} has {tables} tables of vectors for the last numbers of {input}; each table needs vectors, and \
         rows of numbers as many as there are tables at least"
    )]
    Embedding {
        /// Which layer.
        layer: String,
        /// How many tables it has.
        tables: usize,
        /// The shape of the input.
        input: Dims,
    },
    /// A stack that does not end in logits.
    #[error("the last layer must be linear: its outputs are the scores")]
    NoLastLinear,
}

/// What makes room for windows that are larger than their input.
fn room_for_windows(input: &Dims) -> &'static str {
    match input {
        Dims {
            height: 1,
            width: 1,
            ..
        } => {
            "that is a row of numbers, not an image: put this layer before `flatten`, `linear` and `global-pool`"
        }
        _ => "use a smaller kernel, more padding, or fewer pools before it",
    }
}

impl NnError {
    /// The name of the layer that cannot be built, if it is one.
    pub fn layer(&self) -> Option<&str> {
        match self {
            Self::NoOutputs { layer }
            | Self::Probability { layer, .. }
            | Self::TooManyLayers { layer }
            | Self::EmptyBody { layer }
            | Self::Paths { layer, .. }
            | Self::NoWindow { layer, .. }
            | Self::TooSmall { layer, .. }
            | Self::Pool { layer, .. }
            | Self::Groups { layer, .. }
            | Self::NoSequence { layer, .. }
            | Self::Unflatten { layer, .. }
            | Self::Embedding { layer, .. } => Some(layer),
            Self::NoLastLinear => None,
        }
    }
}
