//! A run has one owner at a time.
//!
//! The lock belongs to the open file, not to what is in it: it ends with its process, however that
//! ends, so a lock is never left behind.

use crate::{RunDir, StoreError};
use std::fs::{File, TryLockError};

/// Proof that nobody else trains this run; dropping it lets others do so.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

impl RunDir {
    /// Takes the run for this process alone.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when another process has it; or when the folder cannot be written.
    pub fn lock(&self) -> Result<RunLock, StoreError> {
        let path = self.path.join(".lock");
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(StoreError::io("write", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(RunLock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(StoreError::InUse {
                name: self.name.clone(),
            }),
            Err(TryLockError::Error(error)) => Err(StoreError::io("lock", &path)(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_one_owner_until_that_one_lets_go() {
        let store = tempfile::tempdir().unwrap();
        let run = RunDir::create(store.path(), "job").unwrap();
        let lock = run.lock().unwrap();
        let error = run.lock().unwrap_err();
        assert!(matches!(error, StoreError::InUse { .. }), "{error}");
        assert!(error.to_string().contains(&run.name), "{error}");
        drop(lock);
        run.lock().unwrap();
    }
}
