//! Predictions over HTTP: a request's rows become samples, a model says what they are, and that is the answer.
//!
//! Two protocols bring rows: MLflow's scoring protocol (`mlflow`) and the Open Inference Protocol (`open_inference`).
//! Both make a `Content` of what they read, and the `Takes` of a model makes samples of
//! that, by the same code as `lockstep predict` does of files. A thread owns each model (`live`) and computes what is
//! waiting as one batch; what a model says of a row does not depend on the rows beside it, so it says the same to the bit
//! as `lockstep predict`. A [`HeldModels`] holds the models that are in use, follows aliases that move, and gives back what
//! nobody asks for.

mod about;
mod answer;
mod content;
mod csv_body;
mod error;
mod held_models;
mod histogram;
mod json;
mod json_reader;
mod live;
mod metrics;
mod mlflow;
mod model_card;
mod multipart;
mod open_inference;
mod pictures;
mod predict;
mod refusal;
mod routes;
mod sample_rows;
mod settings;
mod source;
mod table_rows;
mod takes;
mod tensor;
mod tensor_data;
#[cfg(test)]
mod testing;

pub use error::ServingError;
pub use held_models::HeldModels;
pub use refusal::Refusal;
pub use routes::{ModelPath, predictions_of, routes};
pub use settings::ServingSettings;
pub use source::{ModelSource, NamedVersion};
