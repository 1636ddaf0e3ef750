//! The local engine: a gang of child processes on this machine.
//!
//! | part | what it is for |
//! |---|---|
//! | `crew` | the processes: started, and never left behind |
//! | `notice` | all that happens to workers, in one channel |
//! | `muster` | what workers are started with, and told |
//! | `supervisor` | the loop that hears, records, replaces and ends |
//! | `roll` | who is where, and what follows from what is heard |
//! | `losses` | what failures cost |
//! | `blame` | which worker failed first, and why |
//! | `lines`, `fold` | what workers write, as lines, identical ones folded |
//! | `resume` | earlier runs: to go on with, or to begin a new one from |
//! | [`embed`] | pictures become vectors before a job trains on them |
//! | `record` | logs, metrics and the result in the run's folder |
//! | [`infer`] | a trained model on a whole set |
//! | [`tasks`] | workers without a gang, which take numbered tasks |

mod blame;
mod crew;
pub mod embed;
mod fold;
pub mod infer;
mod lines;
mod losses;
mod member;
mod muster;
mod notice;
mod record;
mod resume;
mod roll;
#[cfg(test)]
mod roll_model;
mod run;
mod supervisor;
pub mod tasks;

pub use run::{RunRequest, run};
