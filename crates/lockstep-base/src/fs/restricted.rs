//! Folders that are not for everybody.

use crate::fs::FsError;
use std::fs::{self, DirBuilder, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

/// Makes the folder `path` with these permissions, or gives them to one that is there. Folders on the way to it are made
/// as others are.
///
/// # Errors
/// When it cannot be made, or belongs to somebody else.
pub fn restricted_folder(path: &Path, mode: u32) -> Result<(), FsError> {
    let failed = || FsError::io("create", path);
    if let Some(above) = path.parent() {
        fs::create_dir_all(above).map_err(failed())?;
    }
    match DirBuilder::new().mode(mode).create(path) {
        // The mask of the process may have taken something away.
        Ok(()) => (),
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => (),
        Err(error) => return Err(failed()(error)),
    }
    fs::set_permissions(path, Permissions::from_mode(mode)).map_err(failed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_folder_is_private_and_an_open_one_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store/.server");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        for _ in 0..2 {
            restricted_folder(&path, 0o700).unwrap();
            assert_eq!(mode(&path), 0o700);
            assert_ne!(mode(path.parent().unwrap()) & 0o055, 0);
            fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        }
    }
}
