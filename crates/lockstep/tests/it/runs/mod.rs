//! `lockstep runs` through the binary: what was trained is found, compared, tagged and removed.

mod choosing;
mod comparing;
mod removing;
mod shared;
