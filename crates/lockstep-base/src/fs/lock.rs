//! A file that one process has at a time.
//!
//! The lock belongs to the open file, not to what is in it: it ends with its process, however that
//! ends, so a lock is never left behind.

use crate::fs::FsError;
use std::fs::{File, TryLockError};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Proof that nobody else holds the lock; dropping it lets others have it.
#[derive(Debug)]
pub struct FileLock {
    file: File,
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
            .open(path)
            .map_err(FsError::io("write", path))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(FileLock { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(FsError::io("lock", path)(error)),
        }
    }

    /// Replaces what the file holds, for others to read. Not in one step: a reader may see a part.
    ///
    /// # Errors
    /// When the file, which is that of `path`, cannot be written.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), FsError> {
        let written = self
            .file
            .set_len(0)
            .and_then(|()| self.file.write_all_at(bytes, 0));
        written.map_err(FsError::io("write", path))
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
