//! The training loop: data, model and gang brought together.
pub mod control;
pub mod event;
