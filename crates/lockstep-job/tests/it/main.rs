//! The integration tests of `lockstep-job`: one program, a module for each subject.

mod errors;
mod load;
mod round_trip;
mod secrets;
