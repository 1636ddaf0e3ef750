//! A file that one process has at a time.
//!
//! The lock belongs to the open file, not to what is in it: it ends with its process, however that
//! ends, so a lock is never left behind.

use crate::fs::FsError;
use std::fs::{File, Permissions, TryLockError};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The permissions of a lock: whoever can open a file can lock it, and so keep its owner waiting. So nobody can open one
/// who may not write it.
pub(crate) const MODE: u32 = 0o622;
/// The bits that let others open it.
const READERS: u32 = 0o044;

/// Proof that nobody else holds the lock; dropping it lets others have it.
#[derive(Debug)]
pub struct FileLock {
    file: File,
}

impl Drop for FileLock {
    /// Closing would not do: a process that is just being started beside this one has the file open too, for the moment
    /// between its fork and its exec, and would hold the lock for that long.
    fn drop(&mut self) {
        // What cannot be unlocked is closed.
        let _ = self.file.unlock();
    }
}

impl FileLock {
    /// Takes the lock of the file `path`, which is made if need be. `None` when another process, or
    /// another part of this one, has it.
    ///
    /// # Errors
    /// When the file cannot be made, or the file system knows no locks.
    pub fn try_take(path: &Path) -> Result<Option<FileLock>, FsError> {
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(MODE)
            .open(path)
            .map_err(FsError::io("write", path))?;
        FileLock::try_hold(file, path)
    }

    /// The same of a file that is open already, which is that of `path`.
    ///
    /// # Errors
    /// When the file system knows no locks.
    pub fn try_hold(file: File, path: &Path) -> Result<Option<FileLock>, FsError> {
        let open_to_all = |mode: u32| mode & READERS != 0;
        if let Ok(found) = file.metadata()
            && open_to_all(found.permissions().mode())
        {
            // One of before; whoever is not its owner leaves it as it is.
            let mode = found.permissions().mode() & !READERS & 0o777;
            let _ = file.set_permissions(Permissions::from_mode(mode));
        }
        match file.try_lock() {
            Ok(()) => Ok(Some(FileLock { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(FsError::io("lock", path)(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_has_one_holder_until_that_one_lets_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let lock = FileLock::try_take(&path).unwrap();
        assert!(lock.is_some() && FileLock::try_take(&path).unwrap().is_none());
        drop(lock);
        assert!(FileLock::try_take(&path).unwrap().is_some());
    }
}
