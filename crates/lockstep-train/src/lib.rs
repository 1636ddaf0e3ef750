//! The training loop: data, model and gang brought together.
//!
//! A [`NetworkCoordinator`] checks a job before any worker exists; a [`NetworkLearner`] is what each worker drives. Everything
//! that decides the result is computed alike on every rank or exchanged through the gang's collectives;
//! the control link only carries news.

mod average;
mod batches;
mod card;
mod checkpoint;
mod choice;
#[cfg(test)]
mod conformance;
mod coordinator;
mod copies;
mod cuda;
mod device;
mod error;
mod evaluate;
mod exchange;
mod fork;
mod host;
mod improvement;
mod lanes;
mod layer_rates;
mod learner;
mod loss_shape;
mod mixing;
mod network;
mod numerics;
mod peers;
mod prepare;
mod pretrained;
mod recover;
mod replica;
mod resume_fingerprint;
mod saved;
mod sets;
mod snapshot;
mod targets;
mod threads;
mod traffic;
mod trained;
mod trainer;
mod weights;

pub use coordinator::{ModelExporter, NetworkCoordinator, NetworkLearner};
pub use error::TrainError;
pub use fork::export_weights;
pub use learner::LearnerPart;
pub use prepare::{MemoryEstimate, Prepared, Start, check_start, plan, prepare};
pub use recover::recover_model;
pub use saved::{InputElement, SavedModel};
pub use sets::{DataFacts, FoundSets};
