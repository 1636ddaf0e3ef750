//! The integration tests of `lockstep-trees`: one program, a module for each subject.

mod conformance;
mod same_model;
