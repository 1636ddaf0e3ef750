//! Folders for what is gone soon, which belong to this user alone.
//!
//! The folder for temporary files is everybody's: who guesses a name there can make it first, as a link to a file of
//! somebody else's. So nothing is written there but in a folder that was made with a name nobody can guess, in one
//! step, and that only its user may enter.

use crate::fs::FsError;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

/// A folder that is removed, with all that is in it, when this is dropped.
pub type PrivateFolder = tempfile::TempDir;

/// Makes a folder that only this user may enter, in the folder for temporary files.
///
/// # Errors
/// When there is no place for it.
pub fn private_folder() -> Result<PrivateFolder, FsError> {
    tempfile::Builder::new()
        .prefix("lockstep-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
        .map_err(FsError::io("make a folder in", &std::env::temp_dir()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_user_may_enter_a_private_folder_and_it_goes_with_its_handle() {
        let folder = private_folder().unwrap();
        let path = folder.path().to_owned();
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert_ne!(path, private_folder().unwrap().path());
        std::fs::write(path.join("a"), "a").unwrap();
        drop(folder);
        assert!(!path.exists());
    }
}
