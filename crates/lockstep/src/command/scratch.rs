//! A store for runs that nobody keeps.

use lockstep_job::Location;
use std::fs;
use std::path::PathBuf;

/// A store that is gone when this is dropped.
pub(super) struct ScratchStore(PathBuf);

impl ScratchStore {
    /// In the folder for temporary files. Nothing is made yet.
    pub(super) fn new() -> Self {
        Self(std::env::temp_dir().join(format!("lockstep-{}", std::process::id())))
    }

    /// Where it lies.
    pub(super) fn location(&self) -> Location {
        Location::new(self.0.to_string_lossy())
    }
}

impl Drop for ScratchStore {
    fn drop(&mut self) {
        // What cannot be removed is in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
