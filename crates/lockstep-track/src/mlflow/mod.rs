//! Runs in MLflow: an experiment's run with its parameters, metrics, data, files and model.
//!
//! What is sent is read from the run's folder, never from what passes by: `mlflow.json` in that
//! folder says which of MLflow's runs it is and how far it was sent. So a server that was away catches up, a run that
//! is resumed goes on with the same of MLflow's runs, and one that ended long ago can be [pushed](push), all by the
//! same code. If this process dies between sending something and noting that, it is sent again, with the same time
//! and step, which MLflow keeps once.

mod artifacts;
mod batch;
mod description;
mod model;
mod models;
mod parameters;
mod server;
mod settings;
mod signature;
mod sink;
mod state;
mod sync;
#[cfg(test)]
mod tests;

pub use model::{Exporter, registered_files};
pub use server::reach;
pub use settings::MlflowSettings;
pub use sink::{Mlflow, push};
