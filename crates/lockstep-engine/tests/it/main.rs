//! The integration tests of `lockstep-engine`: one program, a module for each subject.

mod tasks;
