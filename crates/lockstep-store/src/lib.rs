//! Places where runs and caches live.
//!
//! Three promises: a file is either there in full or not at all ([`AtomicFile`]), the name of a run
//! is never given twice ([`RunDir`]), and what can be rebuilt lies apart from what cannot
//! ([`CacheDir`]).

mod atomic;
mod cache;
mod error;
mod name;
mod run;

pub use atomic::{AtomicFile, write_atomic};
pub use cache::CacheDir;
pub use error::StoreError;
pub use run::RunDir;
