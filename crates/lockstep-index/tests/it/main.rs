//! The integration tests of `lockstep-index`: one program, a module for each subject.

mod common;
mod refresh;
mod trouble;
