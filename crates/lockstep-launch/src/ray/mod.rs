//! Workers on a Ray cluster.
//!
//! [`RayLauncher`] is a [`Launcher`](crate::Launcher): the coordinator stays this program, and
//! only where workers run is Ray's. Ray is spoken to in Python, by one short script (in `shim/`) that the binary
//! carries. It is a child of this process that makes placement groups and an actor for each worker, and each actor
//! starts the binary on its node. Workers then join the coordinator over encrypted TCP as anywhere else, so neither
//! gradients nor weights pass through Ray.
//!
//! Whatever ends first, nothing is left over: a worker dies with its actor, the actors and the placement groups with
//! the shim, and the shim with the coordinator.

mod error;
mod launcher;
mod protocol;
mod room;
mod shim;
mod state;

pub use error::RayError;
pub use launcher::{RayLauncher, RayRequest};
