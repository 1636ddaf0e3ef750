//! Trained models and encoders as ONNX: one file that other programs compute with, and need nothing else for.
//!
//! The graph takes samples as they are stored, pictures as bytes and tables by columns, and holds all that is done to
//! them, so that nobody can forget it. It says what `lockstep predict` says: probabilities and a class, the probabilities of labels, or
//! numbers in the units of the set. What else one must know, such as the names of the classes and what becomes of a
//! picture first, is in the file's metadata.

mod columns;
mod dates;
mod encoder;
mod encoding;
mod error;
mod form;
mod graph;
mod outputs;
mod port;
mod proto;
mod run;
mod scale;

pub use encoder::of_encoder;
pub use error::OnnxError;
pub use form::InputForm;
pub use graph::{OPSET, OnnxModel, check_size};
pub use port::{Element, Port};
pub use run::{export_run, of_run, of_run_with_encoder};
