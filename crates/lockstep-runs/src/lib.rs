//! Runs, and the states that they keep, wherever they lie: in a folder of this machine or in a bucket.
//!
//! Four promises: the name of a run is never given twice ([`RunDir`]), a run has one owner at a time
//! ([`RunLock`]), whoever was replaced can no longer add to it ([`Generation`]), and its newest whole
//! state is found whatever happened to it ([`checkpoint`]).

pub mod checkpoint;
pub mod document;
mod error;
mod held;
mod journal;
mod lease;
mod lock;
mod name;
mod owner;
mod process;
pub mod registry;
mod run;

pub use error::RunsError;
pub use held::Held;
pub use journal::Journal;
pub use lock::RunLock;
pub use owner::Generation;
pub use run::{CONFUSION, EVALUATION, MISTAKES, RunDir};
