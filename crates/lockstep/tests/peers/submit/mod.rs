//! Jobs on a real Ray cluster: the head of one comes from PyPI and runs on this machine.
//!
//! LOCKSTEP_TEST_RAY names another version than the newest that is tested.

mod address;
mod cluster;
mod ends;
mod heads;
mod log;
mod package;
mod scripts;
mod several;
mod whole;
