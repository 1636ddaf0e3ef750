//! Jobs on `lockstep serve`: through Lockstep's own commands, and by plain requests; two hundred at once, with a server
//! that is killed in between.

mod lockstep;
mod many;
mod wire;
