//! The integration tests of `lockstep-measure`: one program, a module for each subject.

mod formula;
mod reference;
