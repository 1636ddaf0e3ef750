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
mod dims;
pub mod encoder;
mod error;
mod factors;
mod fingerprint;
pub mod fixed16;
pub mod gemm;
pub mod graph;
mod init;
pub mod layers;
mod layout;
mod loss;
mod marks;
mod model;
mod operation;
pub mod optimizer;
mod rates;
mod replica;
mod schedule;
mod spec;
mod state;
pub mod threads;
pub mod zoo;

use lockstep_base::{math, simd};

pub use buffer::Buffer;
pub use dims::Dims;
pub use error::{LayerFault, NnError};
pub use factors::{Factored, PANEL, add};
pub use fingerprint::{NUMERICS_VERSION, fingerprint, fingerprint_in};
pub use fixed16::Precision;
pub use layers::batch_norm::MOMENTUM as STATISTICS_SHARE;
pub use layers::dropout::DOMAIN as DROPOUT_DOMAIN;
pub use layers::window::Window;
pub use layers::{EmbeddingTable, Step};
pub use layout::{CHUNK, LAYOUT_VERSION, Layout, NumberOrder, Role, Tensor};
pub use loss::{Loss, LossSum, LossTargets, ShapedClasses, Targets, WeightedNumbers, sigmoid};
pub use marks::MarkedPlaces;
pub use model::{Batch, Capacity, Model};
pub use operation::{
    BatchNormPlaces, BuiltLayer, ConvolutionMethod, GroupNormPlaces, Operation, OperationChain,
    TablePlace,
};
pub use optimizer::{Optimizer, Update};
pub use rates::{LayerRates, stands_for};
pub use replica::{Collect, LayerGradient, Replica};
pub use schedule::{Decay, Schedule};
pub use spec::{FirstWeights, LayerSpec, LayerSummary, NamedLayer};
pub use state::{StatePart, StateVector, UpdateChunk};
pub use threads::Threads;
