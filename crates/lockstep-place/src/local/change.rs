//! Writing and removing files of this machine.

use super::{failed, is_missing, version};
use crate::PlaceError;
use lockstep_base::fs::{AtomicFile, FsError, sync_folder};
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How long a writer may keep others from comparing and replacing: it does no more than that.
const PATIENCE: Duration = Duration::from_secs(30);

/// Begins a file, and makes the folders that it lies in.
pub(crate) fn writer(path: &Path) -> Result<AtomicFile, PlaceError> {
    make_folder(folder_of(path))?;
    Ok(AtomicFile::create(path)?)
}

/// Writes the file if there is none, and returns its version.
pub(crate) fn create_new(path: &Path, bytes: &[u8]) -> Result<Option<String>, PlaceError> {
    let mut file = writer(path)?;
    file.write_all(bytes).map_err(FsError::io("write", path))?;
    match file.commit_new()? {
        true => written(path).map(Some),
        false => Ok(None),
    }
}

/// Replaces the file if it is still that of `expected`, and returns its new version. All who do so lock the
/// folder meanwhile, since no file system compares and renames in one step.
pub(crate) fn replace_if(
    path: &Path,
    expected: Option<&str>,
    bytes: &[u8],
) -> Result<Option<String>, PlaceError> {
    let folder = folder_of(path);
    let opened = File::open(folder).map_err(failed("write", folder))?;
    let end = Instant::now() + PATIENCE;
    loop {
        match opened.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if Instant::now() < end => {
                thread::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(failed("lock", folder)(error.into())),
        }
    }
    let found = match fs::metadata(path) {
        Ok(found) => version(&found),
        Err(error) if is_missing(error.kind()) => return Ok(None),
        Err(error) => return Err(failed("look at", path)(error)),
    };
    if expected != Some(found.as_str()) {
        return Ok(None);
    }
    lockstep_base::fs::write_atomic(path, bytes)?;
    written(path).map(Some)
}

fn written(path: &Path) -> Result<String, PlaceError> {
    let found = fs::metadata(path).map_err(failed("look at", path))?;
    Ok(version(&found))
}

/// Removes the file, if it is there.
pub(crate) fn delete(path: &Path) -> Result<(), PlaceError> {
    match lockstep_base::fs::remove_file(path) {
        Err(error) if !is_missing(error.kind()) => Err(failed("delete", path)(error)),
        _ => Ok(()),
    }
}

/// Removes the folder and what is in it, if it is there.
pub(crate) fn delete_all(path: &Path) -> Result<(), PlaceError> {
    match lockstep_base::fs::remove_folder(path) {
        Err(error) if !is_missing(error.kind()) => Err(failed("remove", path)(error)),
        _ => Ok(()),
    }
}

/// The folders directly in this one. What is no text is none of ours.
pub(crate) fn folders(path: &Path) -> Result<Vec<String>, PlaceError> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed("list", path))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed("list", path))?;
        if entry.path().is_dir() {
            names.extend(entry.file_name().into_string());
        }
    }
    Ok(names)
}

/// Makes the folder and those on the way to it. The names of those that were made outlive a power cut.
pub(crate) fn make_folder(path: &Path) -> Result<(), PlaceError> {
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.is_dir();
    let missing: Vec<&Path> = path.ancestors().take_while(is_missing).collect();
    for folder in missing.into_iter().rev() {
        if make_new_folder(folder)? {
            sync_folder(folder_of(folder))?;
        }
    }
    Ok(())
}

/// Makes the folder; whether it was not there before.
pub(crate) fn make_new_folder(path: &Path) -> Result<bool, PlaceError> {
    match lockstep_base::fs::create_folder(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(false),
        Err(error) => Err(failed("create", path)(error)),
    }
}

/// The folder that holds `path`; a bare name lies in the current one.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
