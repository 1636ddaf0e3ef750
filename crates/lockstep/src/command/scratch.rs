//! A store for runs that nobody keeps.

use lockstep_base::fs::{FsError, PrivateFolder, private_folder};
use lockstep_job::Location;

/// A store that is gone when this is dropped, and that nobody else can reach.
pub(super) struct ScratchStore(PrivateFolder);

impl ScratchStore {
    /// In the folder for temporary files.
    ///
    /// # Errors
    /// When there is no place for it.
    pub(super) fn new() -> Result<Self, FsError> {
        private_folder().map(Self)
    }

    /// Where it lies.
    pub(super) fn location(&self) -> Location {
        Location::new(self.0.path().to_string_lossy())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    #[test]
    fn nobody_else_can_guess_or_enter_the_store() {
        let stores = [(); 2].map(|()| ScratchStore::new().unwrap());
        let [first, second] = stores.each_ref().map(|store| store.location().to_string());
        assert_ne!(first, second);
        let found = Path::new(&first).metadata().unwrap();
        assert_eq!(found.permissions().mode() & 0o777, 0o700);
        let id = format!("lockstep-{}", std::process::id());
        assert!(!first.ends_with(&id), "{first}");
        drop(stores);
        assert!(!Path::new(&first).exists());
    }
}
