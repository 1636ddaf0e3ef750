//! `lockstep runs` through the binary: what was trained is found, compared, tagged and removed.

#[path = "../common/mod.rs"]
mod common;

mod choosing;
mod comparing;
mod removing;
