//! The integration tests of `lockstep-base`: one program, a module for each subject.

mod process;
mod unpack;
