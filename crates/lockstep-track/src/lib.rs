//! Whoever hears of a run beside the views of its command: trackers of experiments, and notices.
//!
//! A [`Sink`] hears the events of a run. The [`Tracker`] gives each sink a thread and a bounded queue, so that the
//! run never waits for one: telling an event is a push into memory. A sink that fails or falls behind costs one
//! warning, never a step.
//!
//! The truth about a run is its folder. A sink that must not miss anything reads it there
//! ([`RunDir::read_events`](lockstep_runs::RunDir::read_events)) and takes an event only as a sign that there is more to
//! read: so what a dead server missed, or what a killed coordinator did
//! not send, is sent later by the same code.

mod bounded;
mod error;
mod http;
pub mod mlflow;
pub mod notify;
mod origin;
mod queue;
mod repository;
mod sink;
pub mod tensorboard;
mod tracker;

pub use bounded::ask_program;
pub use error::SinkError;
pub use http::Credentials;
pub use origin::{Machine, Origin, command_line};
pub use repository::Repository;
pub use sink::{Begun, Sink};
pub use tracker::Tracker;
