//! A run has one owner at a time.

use crate::{RunDir, RunsError};
use lockstep_fs::FileLock;

/// Proof that nobody else trains this run; dropping it lets others do so.
#[derive(Debug)]
pub struct RunLock {
    _lock: FileLock,
}

impl RunDir {
    /// Takes the run for this process alone.
    ///
    /// # Errors
    /// [`RunsError::InUse`] when another process has it; or when the folder cannot be written.
    pub fn lock(&self) -> Result<RunLock, RunsError> {
        match FileLock::try_take(&self.path.join(".lock"))? {
            Some(lock) => Ok(RunLock { _lock: lock }),
            None => Err(RunsError::InUse {
                name: self.name.clone(),
            }),
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
        assert!(matches!(error, RunsError::InUse { .. }), "{error}");
        assert!(error.to_string().contains(&run.name), "{error}");
        drop(lock);
        run.lock().unwrap();
    }
}
