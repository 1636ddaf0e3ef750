//! An index of a store of runs.
//!
//! The truth about a run is its folder. This index is made from folders and can be made again at any time, so losing
//! it costs seconds and never a fact. There is one way into it, [`Index::refresh`]: it reads what a run's folder has
//! gained since the last time and writes that in one transaction. So the index can never say what the folders do not,
//! several processes may write it at once, and one that dies in the middle changes nothing.
//!
//! [`filter`] is the small language that runs are chosen by, [`tags`] the words that a user gives to a run, and
//! [`keep`] decides which runs are old enough to go.

pub mod dates;
mod error;
mod file_system;
pub mod filter;
mod index;
pub mod keep;
mod location;
mod points;
mod query;
mod reading;
mod refresh;
mod run;
mod schema;
pub mod tags;

pub use error::IndexError;
pub use index::Index;
pub use lockstep_events::event::UsedSet;
pub use points::Point;
pub use query::{Artifact, Details, Keys, Kind, Series};
pub use refresh::Refreshed;
pub use run::{Mark, MarkKind, Run, State};
