//! The links between ranks and their keepers, as the mesh has made them.

use crate::secure::handshake::SecureChannel;
use crate::{AbortSwitch, Deadline, Plan};

/// A rank's links to its keeper and to its wards, in one generation.
#[derive(Debug)]
pub struct KeeperLinks {
    pub(crate) rank: usize,
    /// The keeper of each rank.
    pub(crate) keepers: Vec<usize>,
    /// One for each of those ranks that keep for this one, or that this one keeps for.
    pub(crate) channels: Vec<(usize, SecureChannel)>,
    /// Says what each rank's share is: nobody may write anything else at its keeper's.
    pub(crate) plan: Plan,
    pub(crate) encrypt: bool,
    pub(crate) deadline: Deadline,
    pub(crate) abort: AbortSwitch,
}

/// Whether either of two ranks keeps the other's share.
pub(crate) fn are_linked(keepers: &[usize], one: usize, other: usize) -> bool {
    keepers.get(one) == Some(&other) || keepers.get(other) == Some(&one)
}
