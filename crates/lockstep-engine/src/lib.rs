//! Engines that start and supervise gangs of workers.
//!
//! An engine takes a checked job and brings it to a result: it prepares the data, makes the run's
//! folder, starts the workers, listens to them, and records what they say. Its promises: whatever
//! happens, no worker outlives the run; which worker failed first is always said; and a run that
//! could not begin leaves nothing behind.
//!
//! | part | what it is for |
//! |---|---|
//! | [`run`](fn@run) | from a job to a result |
//! | `supervise` | who is in a gang, generations, root causes, recovery |
//! | `record`, `resume` | what a run writes, and earlier runs to go on with |
//! | [`tasks`] | workers without a gang, which take numbered tasks |
//! | [`embed`], [`infer`] | tasks: pictures become vectors; a trained model on a whole set |
//! | [`worker`] | what runs in the processes of a gang |
//! | [`replay`] | a run that is trained again, held against the first |
//! | [`pod`] | a run whose processes a cluster starts by itself |
//! | [`node_check`] | whether every node of a cluster sees what a run needs |

pub mod embed;
mod error;
pub mod infer;
mod invitation;
pub mod node_check;
mod parent;
pub mod pod;
mod profile;
mod ready;
mod record;
pub mod replay;
mod resume;
mod run;
mod stop;
mod supervise;
pub mod tasks;
pub mod worker;

pub use error::{EngineError, describe};
pub use profile::ProfileRequest;
pub use run::{FindCoordinator, RunRequest, run};
pub use stop::{Stop, StopFlag};
