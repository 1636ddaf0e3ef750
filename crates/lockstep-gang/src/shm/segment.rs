//! Memory that processes of one host share, without a name that anyone could stumble over.
//!
//! A segment is an open file without a path: an anonymous memory file on Linux, an unlinked
//! temporary file elsewhere. It lives as long as somebody holds it, so nothing is left behind
//! whatever dies. A child gets it by inheriting the descriptor, and only the child that it was
//! [given to](Segment::give_to) does: everywhere else the descriptor closes on exec.

use crate::GangError;
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A piece of shared memory, zeroed when it is made, of a size that never changes.
#[derive(Debug)]
pub struct Segment {
    file: File,
    bytes: usize,
}

impl Segment {
    /// Makes a segment of at least `bytes` bytes.
    pub fn create(bytes: usize) -> Result<Self, GangError> {
        let create = || {
            let file = anonymous_file()?;
            file.set_len(bytes.max(1) as u64)?;
            seal(&file)?;
            Ok(file)
        };
        let file = create().map_err(GangError::io(format!(
            "make {bytes} bytes of shared memory"
        )))?;
        Ok(Self { file, bytes })
    }

    /// Lets the process that `command` will start inherit this segment. Returns the descriptor's
    /// number in that process, for [`Segment::inherited`].
    pub fn give_to(&self, command: &mut Command) -> Result<RawFd, GangError> {
        let file = self
            .file
            .try_clone()
            .map_err(GangError::io("duplicate shared memory's handle"))?;
        let number = file.as_raw_fd();
        // SAFETY: between fork and exec the closure makes one system call on a descriptor that it
        // owns, and touches neither memory that another thread may have locked nor the allocator.
        unsafe {
            command.pre_exec(move || Ok(fcntl_setfd(&file, FdFlags::empty())?));
        }
        Ok(number)
    }

    /// The segment that this process inherited as descriptor `number`. From here on it closes on
    /// exec.
    pub fn inherited(number: RawFd) -> Result<Self, GangError> {
        let open = || {
            if number < 0 {
                return Err(rustix::io::Errno::BADF.into());
            }
            // SAFETY: the descriptor is borrowed for these two calls only, which fail cleanly if
            // it is not open; it is duplicated, never closed.
            let inherited = unsafe { BorrowedFd::borrow_raw(number) };
            fcntl_setfd(inherited, FdFlags::CLOEXEC)?;
            Self::sealed(File::from(fcntl_dupfd_cloexec(inherited, 3)?))
        };
        open().map_err(GangError::io(format!(
            "take over shared memory as descriptor {number}"
        )))
    }

    /// A file that is one, and whose size never changes.
    pub(crate) fn sealed(file: File) -> std::io::Result<Self> {
        let bytes = file.metadata()?.len() as usize;
        require_sealed(&file)?;
        Ok(Self { file, bytes })
    }

    /// The number of its descriptor in this process.
    pub fn number(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Another handle on the same memory.
    pub fn try_clone(&self) -> Result<Self, GangError> {
        let file = self
            .file
            .try_clone()
            .map_err(GangError::io("duplicate shared memory's handle"))?;
        Ok(Self {
            file,
            bytes: self.bytes,
        })
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

#[cfg(target_os = "linux")]
fn anonymous_file() -> std::io::Result<File> {
    use rustix::fs::{MemfdFlags, memfd_create};
    Ok(memfd_create("lockstep", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?.into())
}

/// The size that a mapping relies on must stay: with a shorter file, reading would be a fatal signal.
#[cfg(target_os = "linux")]
const SEALS: rustix::fs::SealFlags =
    rustix::fs::SealFlags::SHRINK.union(rustix::fs::SealFlags::GROW);

#[cfg(target_os = "linux")]
fn seal(file: &File) -> std::io::Result<()> {
    Ok(rustix::fs::fcntl_add_seals(
        file,
        SEALS | rustix::fs::SealFlags::SEAL,
    )?)
}

#[cfg(target_os = "linux")]
fn require_sealed(file: &File) -> std::io::Result<()> {
    match rustix::fs::fcntl_get_seals(file) {
        Ok(seals) if seals.contains(SEALS) => Ok(()),
        _ => Err(std::io::Error::other(
            "it is not a segment of shared memory",
        )),
    }
}

#[cfg(not(target_os = "linux"))]
fn anonymous_file() -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(std::io::Error::other)?;
    let name = lockstep_base::fs::hex::encode(random);
    let path = std::env::temp_dir().join(format!("lockstep-{name}"));
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(not(target_os = "linux"))]
fn seal(_file: &File) -> std::io::Result<()> {
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn require_sealed(_file: &File) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    /// Whether descriptor `number` is open in a child started by `command`.
    fn child_sees(command: &mut Command, number: RawFd) -> bool {
        command
            .args(["-c", &format!("test -e /dev/fd/{number}")])
            .stdin(Stdio::null())
            .status()
            .unwrap()
            .success()
    }

    #[test]
    fn only_the_child_that_it_was_given_to_inherits_a_segment() {
        let segment = Segment::create(4096).unwrap();
        let mut chosen = Command::new("sh");
        let number = segment.give_to(&mut chosen).unwrap();
        assert!(!child_sees(&mut Command::new("sh"), number));
        assert!(child_sees(&mut chosen, number));
        assert!(!child_sees(
            &mut Command::new("sh"),
            segment.file().as_raw_fd()
        ));
    }

    #[test]
    fn what_is_no_segment_is_refused() {
        assert!(Segment::inherited(-1).is_err());
        assert!(Segment::inherited(999).is_err());
        let file = File::open("/dev/null").unwrap();
        if cfg!(target_os = "linux") {
            assert!(Segment::inherited(file.as_raw_fd()).is_err());
        }
    }

    #[test]
    fn a_segment_cannot_be_made_shorter_under_those_who_map_it() {
        let segment = Segment::create(4096).unwrap();
        if cfg!(target_os = "linux") {
            assert!(segment.file().set_len(0).is_err());
        }
        assert_eq!(
            Segment::inherited(segment.file().as_raw_fd())
                .unwrap()
                .bytes(),
            4096
        );
    }
}
