//! From what a built network computes to the kernels that compute it.
//!
//! A [`Chain`] is made of a network's operations once, and plans the memory of its activations for the most rows that it
//! will see. Then it appends launches to a [`Pass`]: of so many rows, forth or back. Launches are plain values; nothing
//! here needs a GPU.
//!
//! The rows of all lanes of this worker follow each other. Most kernels do not see lanes: a row does not care which one
//! it is in. Gradients do: each lane has a vector of its own, as long as the state, and kernels that write to it have the
//! lanes in the third direction of their grid.

mod chain;
mod copy;
mod dense;
mod loss;
mod pass;
mod planner;
mod pointwise;
mod product;
mod step;
mod update;

pub(crate) use chain::Chain;
pub(crate) use loss::LossKernel;
pub(crate) use pass::{Pass, PassKind, PassMemory};
pub(crate) use planner::Planner;
pub(crate) use step::{BatchMemory, LaneSum, LaneTables, Progress, ResidentMemory, RowSum};
pub(crate) use update::{OptimizerKernel, StepRate, UpdateMemory};
