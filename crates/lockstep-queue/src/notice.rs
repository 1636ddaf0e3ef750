//! Hearing of changes in folders at once, through inotify.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use std::io;
use std::mem::MaybeUninit;
use std::path::Path;

/// The number of no folder: changes were lost, because there were too many.
pub const LOST: i32 = -1;
/// Room for some events at a time.
const ROOM: usize = 4096;

/// Hears of changes in folders.
#[derive(Debug)]
pub struct Notice {
    fd: OwnedFd,
}

/// Something changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The number of the watched folder.
    pub watch: i32,
    /// The file or folder in it, if one is meant.
    pub name: String,
}

impl Notice {
    /// Hears of nothing yet.
    ///
    /// # Errors
    /// When the system has no more room for such.
    pub fn new() -> io::Result<Notice> {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        Ok(Notice { fd })
    }

    /// Hears from now on of files of `folder` that got their names or were closed by a writer.
    pub(crate) fn of_files(&self, folder: &Path) -> io::Result<i32> {
        let what = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::CREATE;
        Ok(inotify::add_watch(&self.fd, folder, what)?)
    }

    /// Hears from now on of files of `folder` that grow; the number by which changes name the folder.
    ///
    /// # Errors
    /// When there is no such folder, or too many are watched.
    pub fn of_growth(&self, folder: &Path) -> io::Result<i32> {
        let what = WatchFlags::MODIFY | WatchFlags::CREATE;
        Ok(inotify::add_watch(&self.fd, folder, what)?)
    }

    /// Hears from now on of all that appears in `folder`, grows, or goes; the number by which changes name the folder.
    ///
    /// # Errors
    /// When there is no such folder, or too many are watched.
    pub fn of_all(&self, folder: &Path) -> io::Result<i32> {
        let what = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVE;
        Ok(inotify::add_watch(&self.fd, folder, what)?)
    }

    /// Hears no more of a folder.
    pub fn forget(&self, watch: i32) {
        // It may be gone already.
        let _ = inotify::remove_watch(&self.fd, watch);
    }

    /// What was heard since the last time; does not wait.
    pub fn changes(&self) -> Vec<Change> {
        let mut room = [MaybeUninit::uninit(); ROOM];
        let mut reader = inotify::Reader::new(&self.fd, &mut room);
        let mut found = Vec::new();
        loop {
            match reader.next() {
                Ok(event) => found.push(Change {
                    watch: event.wd(),
                    name: name_of(event.file_name()),
                }),
                Err(Errno::INTR) => (),
                Err(_) => return found,
            }
        }
    }

    /// Takes note of all that was heard. Whether it was anything.
    pub fn clear(&self) -> bool {
        !self.changes().is_empty()
    }
}

fn name_of(name: Option<&std::ffi::CStr>) -> String {
    name.map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

impl AsFd for Notice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Notice {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
