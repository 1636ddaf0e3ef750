//! The local engine: a gang of child processes on this machine.
//!
//! | part | what it is for |
//! |---|---|
//! | `crew` | the processes: started, and never left behind |
//! | `notice` | all that happens to workers, in one channel |
//! | `supervisor` | the loop that hears, records and ends |
//! | `blame` | which worker failed first, and why |
//! | `lines`, `fold` | what workers write, as lines, identical ones folded |
//! | `resume` | earlier runs: to go on with, or to begin a new one from |
//! | `record` | logs, metrics and the result in the run's folder |

mod blame;
mod crew;
mod fold;
mod lines;
mod member;
mod notice;
mod record;
mod resume;
mod run;
mod supervisor;

pub use run::{RunRequest, run};
