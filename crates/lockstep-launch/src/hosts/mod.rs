//! Workers on hosts that come by themselves.
//!
//! Where nothing can be asked to start a process on another machine, processes come: a [`Host`] connects to the
//! coordinator, proves that it has the run's token, and starts workers as it is told. The coordinator holds the
//! [`Hosts`] that have come, and a [`HostLauncher`] starts workers on them as any other
//! [`Launcher`](crate::Launcher) does.
//!
//! | part | what it is for |
//! |---|---|
//! | [`Host`] | a host's loop: finds the coordinator, and serves it until the run is over |
//! | [`Hosts`] | the coordinator's end: who is there, and on which seat |
//! | [`HostLauncher`] | the launcher on top of it |
//! | `protocol` | what the two say to each other |
//!
//! Whatever ends first, nothing is left over: a worker dies with its host, and a host that has lost its coordinator
//! ends its worker before it looks for the next one.

mod error;
mod host;
mod launcher;
mod listener;
mod oom;
mod protocol;
mod session;
mod state;
mod token;

pub use error::HostsError;
pub use host::{Host, HostEnd, Surroundings};
pub use launcher::HostLauncher;
pub use listener::{Hosts, HostsRequest};
pub use token::read_token;
