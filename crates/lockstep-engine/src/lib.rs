//! Engines that start and supervise gangs of workers.
//!
//! An engine takes a checked job and brings it to a result: it prepares the data, makes the run's
//! folder, starts the workers, listens to them, and records what they say. Its promises: whatever
//! happens, no worker outlives the run; which worker failed first is always said; and a run that
//! could not begin leaves nothing behind. There is one engine so far, [`local`]; [`worker`] is what
//! runs in the processes that it starts.

mod error;
mod invitation;
pub mod local;
mod stop;
pub mod worker;

pub use error::{EngineError, describe};
pub use stop::{Stop, StopFlag};
