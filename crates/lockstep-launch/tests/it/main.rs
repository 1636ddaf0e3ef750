//! The integration tests of `lockstep-launch`: one program, a module for each subject.

mod host_launcher;
