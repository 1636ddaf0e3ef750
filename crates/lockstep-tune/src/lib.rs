//! Which settings are best.
//!
//! A [`Space`] says which keys of a job vary and how. Trials are suggested in *generations* of a fixed size, by a
//! [`Method`], from what all earlier generations came to. Within a generation poor trials are stopped early: all train to
//! the first *rung*, the best third of them goes on to the next, and so on ([`rungs`]); one that goes on resumes from its
//! checkpoint.
//!
//! So what is tried depends on the seed and on what trials came to, and on nothing else: not on how many run at a time,
//! and not on which was done first. [`Tuning::next_round`] finds out what is to be done next from what is known, as often
//! as it is asked. A tuning that was killed is read back and asked again: the same trials, the same best.
//!
//! Nothing here starts a run: a [`Search`] asks a [`Trainer`] for it, and reads from the runs what trials came to.

mod error;
mod halving;
mod importance;
mod report;
mod sample;
mod search;
mod space;
mod trial;
mod tuning;

pub use error::{SearchError, TuneError};
pub use halving::rungs;
pub use sample::Method;
pub use search::{Search, Target, Trainer};
pub use space::{Dimension, Range, Space};
pub use tuning::{Reached, Round, Rules, Trial, Tuning};

/// The file that a tuning is kept in.
pub const TUNING: &str = "tuning.json";
/// The file that its report is written to.
pub const REPORT: &str = "report.html";
/// The file that the best job is written to.
pub const BEST: &str = "best.toml";
