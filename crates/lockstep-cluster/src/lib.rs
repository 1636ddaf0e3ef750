//! Jobs on clusters, seen from outside.
//!
//! [`jobs`] is a client of Ray's Jobs API, which a Ray head and `lockstep serve` both speak. [`kube`] writes manifests,
//! applies them, and says why pods do not run. Over both, [`submit`] decides what of a job travels and how it is run
//! there, and [`follow`] tells of a job until its end as if it ran here.

mod error;
pub mod follow;
pub mod jobs;
pub mod kube;
mod log;
mod shell;
pub mod submit;

pub use error::ClusterError;
pub use log::LogEvent;
pub use shell::{shell, shell_line};
