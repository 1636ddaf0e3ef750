//! Runs whose workers are on hosts that come by themselves: the same weights as on one machine, whoever is killed or
//! leaves meanwhile, exit codes that say whether to start a pod again, and nothing left behind.

mod elastic;
mod ends;
mod losses;
mod same_bits;

use crate::common::pods::{Gang, job};
