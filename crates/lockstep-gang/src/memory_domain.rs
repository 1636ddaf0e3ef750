//! Which processes can share memory without having been started by the same one.
//!
//! A process opens the memory of another one through `/proc`. So both must run on the same kernel, see the same
//! processes, and belong to the same user. Processes in different network namespaces are kept apart too, though
//! they could share memory: whoever made the namespaces has said that these are different hosts.

use crate::{GangError, Segment};
use sha2::{Digest, Sha256};
use std::fs;

/// Says the same in all processes that can share memory with each other, and something else elsewhere; nothing where
/// none can.
///
/// The environment variable `LOCKSTEP_HOST` keeps processes apart that have different values of it.
pub fn memory_domain() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let mut hash = Sha256::new();
    hash.update(boot.trim());
    for namespace in ["pid", "net", "user", "mnt"] {
        let namespace = fs::read_link(format!("/proc/self/ns/{namespace}")).ok()?;
        hash.update(namespace.as_os_str().as_encoded_bytes());
    }
    hash.update(rustix::process::geteuid().as_raw().to_le_bytes());
    hash.update(std::env::var("LOCKSTEP_HOST").unwrap_or_default());
    Some(lockstep_base::fs::hex::encode(&hash.finalize()[..16]))
}

impl Segment {
    /// The memory that another process of the same [`memory_domain`] has open as descriptor `number`.
    ///
    /// # Errors
    /// When that process is gone, or has no such memory.
    pub fn of_process(pid: u32, number: i32) -> Result<Self, GangError> {
        let path = format!("/proc/{pid}/fd/{number}");
        let open = || {
            let file = fs::File::options().read(true).write(true).open(&path)?;
            Self::sealed(file)
        };
        open().map_err(GangError::io(format!("take over shared memory at {path}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn memory_of_a_process_is_found_by_its_number_and_nothing_else_passes_for_it() {
        if cfg!(not(target_os = "linux")) {
            return;
        }
        let segment = Segment::create(4096).unwrap();
        let pid = std::process::id();
        let number = segment.file().as_raw_fd();
        assert_eq!(Segment::of_process(pid, number).unwrap().bytes(), 4096);
        let file = fs::File::options().append(true).open("/dev/null").unwrap();
        assert!(Segment::of_process(pid, file.as_raw_fd()).is_err());
        assert!(Segment::of_process(pid, 999).is_err());
        assert_eq!(memory_domain(), memory_domain());
        assert!(memory_domain().is_some());
    }
}
