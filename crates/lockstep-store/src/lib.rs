//! Places where runs and caches live.
//!
//! Five promises: a file is either there in full or not at all ([`AtomicFile`]), the name of a run
//! is never given twice ([`RunDir`]), a run has one owner at a time ([`RunLock`]), its newest whole
//! state is found whatever happened to it ([`checkpoint`]), and what can be rebuilt lies apart from
//! what cannot ([`CacheDir`]).

mod atomic;
mod cache;
pub mod checkpoint;
mod error;
mod kind;
mod lock;
mod name;
mod run;

pub use atomic::{AtomicFile, write_atomic};
pub use cache::CacheDir;
pub use error::StoreError;
pub use kind::file_kind;
pub use lock::RunLock;
pub use run::{CONFUSION, EVALUATION, RunDir};
