//! Event files that TensorBoard reads: scalars, hyperparameters, the confusion matrix, histograms of weights.
//!
//! As with MLflow, what is written comes from the run's record. `written.json` beside the event files says how far: up
//! to which event, and up to which byte of which file. A process that goes on cuts off what the one before had no
//! time to note, and begins a file of its own. So each point is there once, also after `kill -9`. Where training goes
//! on from an earlier step, a mark tells TensorBoard to forget what is told again.
//!
//! The format is small and has not changed for years: records with checksums ([`file`]), each a protobuf message
//! (`proto`).

mod confusion;
mod file;
mod histogram;
mod hparams;
mod proto;
mod sink;
mod write;

pub use sink::{TensorBoard, TensorBoardSettings, WeightsOf};
