//! How the workers of a gang agree on numbers: lanes and their summation tree, the exchange of
//! gradients and parameters, and the control link to the coordinator.
//!
//! A *gang* is N ranked worker processes that train in lockstep. This crate knows flat vectors of
//! `f32` cut into chunks, and nothing of layers, data or job files. Its promise is that a result
//! depends on the lanes alone: [`TreeSum`] adds lanes in one fixed tree however they are spread over
//! workers, and every [`Collective`] moves exactly the numbers that it is given.
//!
//! | part | what it is for |
//! |---|---|
//! | [`tree`] | which lanes a worker owns, and the one tree in which lanes are summed |
//! | [`Plan`] | the chunks of the vector, who owns each, which partial sums travel |
//! | [`Collective`] | the exchange, [step by step](collective): [`Solo`], [`ShmCollective`], [`TcpCollective`], and [`TreeCollective`] of the latter two |
//! | [`SharingCollective`] | what ranks do for each other besides: [shares, products, common chunks](sharing) |
//! | [`Segment`] | the memory that workers of one host share, and how a child process inherits it |
//! | [`KeptState`], [`HeldMemory`] | copies of a gang's state that outlive a worker: in shared memory, and at other ranks |
//! | [`Rendezvous`], [`Link`] | how workers find the coordinator, and what they then talk over |
//! | [`HostListener`] | how hosts find it, on which workers are to be started |
//!
//! Every wait has a [`Deadline`]: a peer that is dead or stuck is an error that names its rank,
//! never a hang.

mod abort;
pub mod collective;
mod error;
mod host_listener;
mod hosts;
mod keepers;
mod link;
mod memory_domain;
mod plan;
mod reduce;
mod rendezvous;
mod secure;
mod shares;
pub mod sharing;
mod shm;
mod solo;
mod tcp;
pub mod tree;

pub use abort::{AbortSwitch, Deadline, Membership};
pub use collective::{Collective, CollectiveExt};
pub use error::GangError;
pub use host_listener::{HostConnection, HostListener};
pub use hosts::{HostMesh, TreeCollective};
pub use keepers::{HeldMemory, HeldShare, HeldVersion, KeeperLinks, keepers, newest_held};
pub use link::{Hello, Link, LinkReader, LinkWriter, MAX_MESSAGE};
pub use memory_domain::memory_domain;
pub use plan::{Partial, Plan};
pub use reduce::TreeSum;
pub use rendezvous::{Arrival, Rendezvous};
pub use secure::acceptor::Refusal;
pub use secure::secret::Secret;
pub use secure::token::{Admissions, SeatToken};
pub use sharing::{Home, SharingCollective};
pub use shm::{
    KeptNote, KeptShape, KeptState, KeptStep, KeptVersion, KeptWriter, NoteExtra, RankStamp,
    Segment, ShmCollective, ShmControl,
};
pub use solo::Solo;
pub use tcp::{Mesh, MeshPeer, TcpCollective};
