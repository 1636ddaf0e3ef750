//! The integration tests of `lockstep-runs`: one program, a module for each subject.

mod checkpoint;
mod power_cut;
