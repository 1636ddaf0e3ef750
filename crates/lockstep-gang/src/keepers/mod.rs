//! Copies of each rank's share of the state at another rank, for gangs that share no memory.
//!
//! Each process holds a [`KeptState`](crate::KeptState) of its own, and in it its own share and those of its *wards*. A
//! rank's *keeper* is a rank on another host, if there is one ([`keepers`]). Whatever a rank writes to its own memory it
//! also sends to its keeper, in the same order ([`message`]), and the keeper does the same with its own. So what a keeper
//! holds of a ward is always what the ward held some moments before, and may be half written in the same ways.
//!
//! # The protocol
//! A step is kept as in shared memory ([`kept`](crate::KeptState)), but a rank comes to the barrier only when it has got all
//! of its wards' shares too ([`KeptWriter::settle`](crate::KeptWriter::settle)). So a version of which any rank is past the
//! barrier lies in two processes, each share of it, and a process that dies takes no share with it that nobody else has.
//! When ranks that are left begin again, they say what they hold ([`HeldMemory::shares`]). The newest version of which all
//! shares are left is what they go on from ([`newest_held`]), and all of them complete it in their memory
//! ([`HeldMemory::complete`]), whatever their number is now.
//!
//! # Threads
//! What is sent is sent by a thread, from the memory itself; each ward has a thread that takes in what comes. All of them
//! end before the writer does, so that nothing changes what a process holds once its generation is over.

mod held;
mod links;
mod message;
mod restore;
mod sender;
mod ward;
mod who;

pub use held::{HeldMemory, HeldShare, HeldVersion, newest_held};
pub(crate) use held::{Holdings, ShareParts};
pub use links::KeeperLinks;
pub(crate) use links::are_linked;
pub(crate) use sender::{KeepJob, Keeping, KeptExtra};
pub use who::keepers;
