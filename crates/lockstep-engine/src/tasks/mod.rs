//! Workers without a gang: processes that take numbered tasks, each on its own.
//!
//! Where the parts of a job need nothing of each other (embedding files, evaluating blocks of a set),
//! workers need not keep in step. [`run`] starts them, hands each idle one the next task, and passes on
//! what they say; [`serve`] is what runs in their processes. The two speak JSON, a line a message: tasks
//! through the worker's standard input, answers through its standard output.
//!
//! # Promises
//! - Every task is done once, as far as its caller sees: its result is delivered exactly once, and tasks
//!   of a worker that is lost go to another.
//! - A lost worker costs its task in progress only, and is replaced. A task that loses its worker twice
//!   is taken to be the reason and fails the job, by its number.
//! - An error that a worker reports would come again, and fails the job at once.
//! - No worker outlives [`run`], its thread, or its process, not even after `kill -9`.
//!
//! | part | what it is for |
//! |---|---|
//! | `queue` | which task is next, and what a lost worker means |
//! | `message` | what the two sides say to each other |
//! | `coordinator` | the coordinator's loop |
//! | `run` | what is asked of it, and what it answers |
//! | `serve` | the worker's side |

mod coordinator;
mod message;
mod queue;
mod run;
mod serve;

pub use run::{CrewSettings, Request, TaskEvent, TasksDone, run};
pub use serve::{TaskFailure, TellProgress, Work, serve};
