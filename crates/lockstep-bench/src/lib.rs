//! One worker against many: what is measured in which order, what it says, and the report of it.
//!
//! A machine is not the same from one minute to the next: others take its cores, its clock goes up and down. So what is
//! to be compared takes turns ([`Plan`]): one round measures every setting once, and each round begins with another of
//! them. A ratio is formed within a round, and the median of the rounds is what is reported, beside its extremes
//! ([`Spread`]). What could make the figures wrong is looked for and said ([`Comparison::warnings`]): a machine with fewer
//! cores than workers, cores that are two threads of one, a limit of a control group, others at work, a difference that
//! is smaller than the spread.
//!
//! Whoever calls [`Bench::measure`] gives it something that measures a [`Setting`], and is given a [`Comparison`] after
//! every turn, so that what was measured is kept whatever comes next. A [`Runner`] measures settings by runs, which a
//! [`RunTrainer`] trains, and by the same in other systems.

mod bench;
mod comparison;
mod error;
mod html;
mod machine;
mod markdown;
mod measured;
mod peer;
mod peers;
mod plan;
mod predict;
mod runner;
mod simulate;
mod spread;
mod warnings;

pub use bench::{Bench, BenchEnd, MeasureOne, Part};
pub use comparison::{Compared, Comparison, SettingRow, Side};
pub use error::{BenchError, MeasureError};
pub use machine::{Busy, MachineFacts};
pub use measured::{EpochPoint, Measured, Turn};
pub use peer::{Peer, PeerAnswer};
pub use plan::{How, Plan, Setting};
pub use predict::{Network, Prediction};
pub use runner::{Purpose, RunTrainer, Runner};
pub use simulate::{Failures, HostCopies, HostStep, Simulated};
pub use spread::Spread;

/// The file that a comparison is written to; the dashboard shows every folder of a store that has one.
pub const COMPARISON: &str = "comparison.json";
/// The file that its table is written to.
pub const TABLE: &str = "comparison.md";
/// The file that its report is written to.
pub const REPORT: &str = "report.html";
