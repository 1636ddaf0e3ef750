//! The job file: its types, defaults and checks, with errors that point at the line.

mod data;
mod gang;
mod job;
mod model;
mod optimizer;
mod run;
mod schedule;
mod train;

pub use data::{Data, DataRef, KNOWN_DATASETS, Normalise, Validation};
pub use gang::{Gang, Transport};
pub use job::Job;
pub use model::{LayerSpec, Model};
pub use optimizer::Optimizer;
pub use run::Run;
pub use schedule::Schedule;
pub use train::Train;
