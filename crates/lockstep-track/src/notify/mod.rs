//! Notices: a webhook or a command is told when something happens that people wait for.
//!
//! A notice that cannot be delivered costs one warning. Each has a time in which it must be delivered, so one that
//! hangs holds up the next ones for so long, and the run for nothing.

mod notice;
mod sink;

pub use notice::{Notice, Occasion};
pub use sink::{Notices, NotifySettings};
