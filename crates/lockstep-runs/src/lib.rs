//! Runs, and the states that they keep.
//!
//! Three promises: the name of a run is never given twice ([`RunDir`]), a run has one owner at a
//! time ([`RunLock`]), and its newest whole state is found whatever happened to it ([`checkpoint`]).

pub mod checkpoint;
mod error;
mod lock;
mod name;
mod run;

pub use error::RunsError;
pub use lock::RunLock;
pub use run::{CONFUSION, EVALUATION, RunDir};
