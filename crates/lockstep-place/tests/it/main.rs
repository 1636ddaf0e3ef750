//! The integration tests of `lockstep-place`: one program, a module for each subject.

#[path = "../conformance/mod.rs"]
mod conformance;
mod local;
mod web;
