//! The integration tests of `lockstep-queue`: one program, a module for each subject.

mod queue;
