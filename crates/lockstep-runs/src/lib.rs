//! Runs, and the states that they keep, wherever they lie: in a folder of this machine or in a bucket.
//!
//! Four promises: the name of a run is never given twice ([`RunDir`]), a run has one owner at a time
//! ([`RunLock`]), whoever was replaced can no longer add to it ([`Generation`]), and its newest whole
//! state is found whatever happened to it ([`checkpoint`]).
//!
//! What happens in a run is recorded as events, which have one writer, [`Journal`], and one reader,
//! [`RunDir::read_events`]. [`files`] has the names of all files of a run.

pub mod checkpoint;
pub mod document;
mod error;
pub mod files;
mod held;
mod journal;
mod lease;
mod lock;
mod name;
mod named_store;
mod owner;
mod pick;
mod process;
mod record;
pub mod registry;
mod run;
mod store_id;

pub use error::RunsError;
pub use files::{CONFUSION, EVALUATION, MISTAKES};
pub use held::Held;
pub use journal::{Journal, as_json};
pub use lock::RunLock;
pub use named_store::{STORE_VARIABLE, named_store};
pub use owner::Generation;
pub use pick::pick;
pub use record::{Piece, Position};
pub use run::RunDir;
pub use store_id::{make_store_id, store_id};
