//! Ends the waiting of a communicator from outside.
//!
//! XGBoost's ranks wait for each other inside its calls, and nothing of its interface ends that before a deadline of
//! seconds. But a connection that is shut down ends a wait at once, as a peer that died would. Which connections are the
//! communicator's is told by when they were opened: a socket is known by its number in the system, which is never
//! another's while it is open.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError};

/// The sockets of this process: the descriptor, and the number in the system.
type Open = BTreeMap<RawFd, String>;

/// The sockets of a communicator.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sockets(Arc<Mutex<Open>>);

impl Sockets {
    /// All sockets that this process has open now.
    pub(crate) fn open_now() -> Open {
        let entries = fs::read_dir("/proc/self/fd")
            .into_iter()
            .flatten()
            .flatten();
        let sockets = entries.filter_map(|entry| {
            let descriptor = entry.file_name().to_str()?.parse().ok()?;
            let target = fs::read_link(entry.path()).ok()?;
            let target = target.to_str()?.to_owned();
            target
                .starts_with("socket:")
                .then_some((descriptor, target))
        });
        sockets.collect()
    }

    /// Those that were not open before.
    pub(crate) fn opened_since(before: &Open) -> Self {
        let mut now = Self::open_now();
        now.retain(|descriptor, socket| before.get(descriptor) != Some(socket));
        Self(Arc::new(Mutex::new(now)))
    }

    pub(crate) fn hang_up(&self) -> HangUp {
        HangUp(self.clone())
    }

    /// They are about to be closed: from here on, hanging up does nothing.
    pub(crate) fn forget(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

/// Ends every wait of a communicator, from any thread. After the communicator is gone it does nothing.
#[derive(Debug, Clone)]
pub struct HangUp(Sockets);

impl HangUp {
    /// Shuts its connections down: calls that wait for a peer fail.
    pub fn now(&self) {
        let sockets = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = Sockets::open_now();
        for (&descriptor, socket) in &*sockets {
            if open.get(&descriptor) != Some(socket) {
                continue;
            }
            // SAFETY: the descriptor was open just now, and is of a socket of the communicator, which closes none before
            // `forget`, and that waits for the lock that is held here.
            let socket = unsafe { BorrowedFd::borrow_raw(descriptor) };
            // One that listens or is not connected cannot be shut down, and nobody waits for it for long.
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
        }
    }
}
