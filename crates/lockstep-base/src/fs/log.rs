//! A log of what was done to the disk, for tests of power cuts. Empty in a release build.

#[cfg(debug_assertions)]
use std::path::Path;
use std::path::PathBuf;

/// One thing that was done. Until it is synced, a power cut may undo it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// A folder was made.
    CreateFolder(PathBuf),
    /// An empty file was made.
    CreateFile(PathBuf),
    /// Bytes were added to a file.
    Write(PathBuf, Vec<u8>),
    /// The bytes of a file were synced.
    Sync(PathBuf),
    /// A file got a name, which was free or another file's.
    Rename(PathBuf, PathBuf),
    /// A file got one more name, which was free.
    Link(PathBuf, PathBuf),
    /// A name was removed, with all below it.
    Remove(PathBuf),
    /// The names in a folder were synced.
    SyncFolder(PathBuf),
}

#[cfg(debug_assertions)]
impl Operation {
    /// The same with the names of folders that were [held](crate::fs::beneath) by their descriptors.
    fn by_names(self) -> Operation {
        let named = |path: PathBuf| {
            let held = path.strip_prefix("/proc/self/fd").ok().and_then(|rest| {
                let mut parts = rest.components();
                let folder = Path::new("/proc/self/fd").join(parts.next()?);
                Some(std::fs::read_link(folder).ok()?.join(parts.as_path()))
            });
            held.unwrap_or(path)
        };
        match self {
            Operation::CreateFolder(path) => Operation::CreateFolder(named(path)),
            Operation::CreateFile(path) => Operation::CreateFile(named(path)),
            Operation::Write(path, bytes) => Operation::Write(named(path), bytes),
            Operation::Sync(path) => Operation::Sync(named(path)),
            Operation::Rename(from, to) => Operation::Rename(named(from), named(to)),
            Operation::Link(from, to) => Operation::Link(named(from), named(to)),
            Operation::Remove(path) => Operation::Remove(named(path)),
            Operation::SyncFolder(path) => Operation::SyncFolder(named(path)),
        }
    }
}

#[cfg(debug_assertions)]
mod live {
    use super::Operation;
    use std::cell::RefCell;

    thread_local! {
        static LOG: RefCell<Option<Vec<Operation>>> = const { RefCell::new(None) };
    }

    /// Does `work`, and returns what it did to the disk through this crate, on this thread.
    pub fn record<T>(work: impl FnOnce() -> T) -> (T, Vec<Operation>) {
        LOG.set(Some(Vec::new()));
        let done = work();
        (done, LOG.take().unwrap_or_default())
    }

    pub(crate) fn note(operation: impl FnOnce() -> Operation) {
        LOG.with_borrow_mut(|log| {
            if let Some(log) = log {
                log.push(operation().by_names());
            }
        });
    }

    /// How many operations were noted so far, of those that [`record`] will return.
    pub fn noted() -> usize {
        LOG.with_borrow(|log| log.as_ref().map_or(0, Vec::len))
    }
}

#[cfg(debug_assertions)]
pub(crate) use live::note;
#[cfg(debug_assertions)]
pub use live::{noted, record};

#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) fn note(_operation: impl FnOnce() -> Operation) {}
