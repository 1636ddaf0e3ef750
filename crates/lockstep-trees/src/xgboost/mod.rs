//! XGBoost's own library, found and loaded at run time.
//!
//! Nothing of XGBoost is linked: a program without trees does not need it, and a user's own build of it is as good as
//! ours. [`find`] says which file is taken and why, [`Xgboost::load`] loads it and checks its version, and what follows
//! is the part of its C interface that training needs, made safe:
//!
//! - a [`Matrix`] of rows that are already cut into bins, streamed from blocks that need not be in memory together;
//! - a [`Booster`]: the model, trained a round at a time with gradients that the caller computes or XGBoost does;
//! - a [`Communicator`], which the booster's histograms are summed over, and the [`Tracker`] that its ranks meet at.
//!
//! All `unsafe` of this crate is calls of those functions. What they promise is XGBoost's documentation; what they are
//! given lives at least as long as the call.

mod array;
mod booster;
mod bring;
mod communicator;
mod error;
mod find;
mod functions;
mod hang_up;
mod library;
mod matrix;
mod message;
mod tracker;

pub use booster::{Booster, Importance, ModelFormat, Predicted};
pub use bring::{Build, bring};
pub use communicator::{Communicator, Number, Operation};
pub use error::XgboostError;
pub use find::{CACHED, LibraryFile, Way, find, find_all};
pub use hang_up::HangUp;
pub use library::{OLDEST, Version, Xgboost};
pub use matrix::{Matrix, MatrixForm, RowBlocks, Rows};
pub use tracker::Tracker;
