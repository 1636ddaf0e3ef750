//! From what a built network computes to the kernels that compute it.
//!
//! A [`Chain`] is made of a network's operations once, and plans the memory of its activations for the most rows that it
//! will see. Then it appends launches to a [`Pass`]: of so many rows, forth or back. Launches are plain values; nothing
//! here needs a GPU.
//!
//! The rows of all lanes of this worker follow each other. Most kernels do not see lanes: a row does not care which one
//! it is in. Gradients do: each lane has a vector of its own, as long as the state, and kernels that write to it have the
//! lanes in the third direction of their grid.

mod activation;
mod average;
mod batch_norm;
mod chain;
mod clip;
mod convolution;
mod copy;
mod dense;
mod divisor;
mod embedding;
mod group_norm;
mod head;
mod learn;
mod loss;
mod marks;
mod pass;
mod peers;
mod planner;
mod pointwise;
mod pool;
mod product;
mod residual;
mod step;
mod targets;
mod transpose;
mod update;
mod walk;
mod window;

pub(crate) use average::{AverageMemory, NEVER};
pub(crate) use chain::Chain;
pub(crate) use clip::{Clip, Clipped};
pub(crate) use divisor::{Divisor, check_count};
pub(crate) use learn::{Learning, merges};
pub(crate) use loss::{LossKernel, LossPass};
pub(crate) use marks::{Looked, MarkMemory};
pub(crate) use pass::{Pass, PassKind, PassMemory};
pub(crate) use peers::{PeerTables, are_addable};
pub(crate) use planner::{Constant, Planner};
pub(crate) use product::MULTIPROCESSORS;
pub(crate) use step::{BatchMemory, LaneSum, LaneTables, Progress};
pub(crate) use update::{OptimizerKernel, StepRate, UpdateMemory};
