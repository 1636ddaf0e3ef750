//! Writing and removing files of this machine.

use super::{LocalPath, failed, is_missing, version};
use crate::PlaceError;
use lockstep_base::fs::beneath::Held;
use lockstep_base::fs::{AtomicFile, FsError, sync_folder};
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How long a writer may keep others from comparing and replacing: it does no more than that.
const PATIENCE: Duration = Duration::from_secs(30);

/// Begins a file, and makes the folders that it lies in.
/// Returns what must be kept until the file has its name.
pub(crate) fn writer(path: &LocalPath) -> Result<(AtomicFile, Held), PlaceError> {
    make_folder(&path.above())?;
    let held = path.held().map_err(failed("write", path))?;
    let file = match path.is_beneath() {
        true => AtomicFile::create_in_place(held.path()),
        false => AtomicFile::create(held.path()),
    };
    Ok((file.map_err(|error| path.named(error))?, held))
}

/// Writes a file that gets its name by `commit`. Its folder is held until the file is done with.
fn write_with<T>(
    path: &LocalPath,
    bytes: &[u8],
    commit: impl FnOnce(AtomicFile) -> Result<T, FsError>,
) -> Result<T, PlaceError> {
    let (mut file, held) = writer(path)?;
    let done = match file.write_all(bytes) {
        Ok(()) => commit(file),
        Err(error) => {
            drop(file);
            Err(FsError::io("write", path)(error))
        }
    };
    drop(held);
    Ok(done.map_err(|error| path.named(error))?)
}

/// Writes the file if there is none, and returns its version.
pub(crate) fn create_new(path: &LocalPath, bytes: &[u8]) -> Result<Option<String>, PlaceError> {
    match write_with(path, bytes, AtomicFile::commit_new)? {
        true => written(path).map(Some),
        false => Ok(None),
    }
}

/// Replaces the file if it is still that of `expected`, and returns its new version. All who do so lock the
/// folder meanwhile, since no file system compares and renames in one step.
pub(crate) fn replace_if(
    path: &LocalPath,
    expected: Option<&str>,
    bytes: &[u8],
) -> Result<Option<String>, PlaceError> {
    let folder = &path.above();
    let held = folder.held_folder().map_err(failed("write", folder))?;
    let opened = File::open(held.path()).map_err(failed("write", folder))?;
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
    let found = match path.metadata() {
        Ok(found) => version(&found),
        Err(error) if is_missing(error.kind()) => return Ok(None),
        Err(error) => return Err(failed("look at", path)(error)),
    };
    if expected != Some(found.as_str()) {
        return Ok(None);
    }
    write_with(path, bytes, AtomicFile::commit)?;
    written(path).map(Some)
}

fn written(path: &LocalPath) -> Result<String, PlaceError> {
    let found = path.metadata().map_err(failed("look at", path))?;
    Ok(version(&found))
}

/// Removes the file, if it is there.
pub(crate) fn delete(path: &LocalPath) -> Result<(), PlaceError> {
    let held = path.held();
    match held.and_then(|held| lockstep_base::fs::remove_file(held.path())) {
        Err(error) if !is_missing(error.kind()) => Err(failed("delete", path)(error)),
        _ => Ok(()),
    }
}

/// Removes the folder and what is in it, if it is there.
pub(crate) fn delete_all(path: &LocalPath) -> Result<(), PlaceError> {
    let held = path.held();
    match held.and_then(|held| lockstep_base::fs::remove_folder(held.path())) {
        Err(error) if !is_missing(error.kind()) => Err(failed("remove", path)(error)),
        _ => Ok(()),
    }
}

/// The folders directly in this one. What is no text is none of ours.
pub(crate) fn folders(path: &LocalPath) -> Result<Vec<String>, PlaceError> {
    let held = path.held_folder();
    let entries = match held.and_then(|held| fs::read_dir(held.path())) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed("list", path))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed("list", path))?;
        let kind = entry.file_type().map_err(failed("list", path))?;
        let linked =
            || !path.is_beneath() && path.join(&entry.file_name().to_string_lossy()).is_dir();
        if kind.is_dir() || (kind.is_symlink() && linked()) {
            names.extend(entry.file_name().into_string());
        }
    }
    Ok(names)
}

/// Makes the folder and those on the way to it. The names of those that were made outlive a power cut.
pub(crate) fn make_folder(path: &LocalPath) -> Result<(), PlaceError> {
    let mut made = Vec::new();
    let beneath = path.make_beneath(|folder| made.push(folder.to_owned()));
    let beneath = beneath.map_err(failed("create", path))?;
    for folder in made {
        sync_folder(folder_of(&folder))?;
    }
    if beneath {
        return Ok(());
    }
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.is_dir();
    let missing: Vec<&Path> = path.ancestors().take_while(is_missing).collect();
    for folder in missing.into_iter().rev() {
        if make_new(folder, folder)? {
            sync_folder(folder_of(folder))?;
        }
    }
    Ok(())
}

/// Makes the folder; whether it was not there before.
pub(crate) fn make_new_folder(path: &LocalPath) -> Result<bool, PlaceError> {
    let held = path.held().map_err(failed("create", path))?;
    make_new(held.path(), path)
}

/// The same of the folder `at`, which people know as `shown`.
fn make_new(at: &Path, shown: &Path) -> Result<bool, PlaceError> {
    let is_folder = || fs::symlink_metadata(at).is_ok_and(|found| found.is_dir());
    match lockstep_base::fs::create_folder(at) {
        Ok(()) => Ok(true),
        Err(error)
            if error.kind() == ErrorKind::AlreadyExists
                && (is_folder() || shown == at && at.is_dir()) =>
        {
            Ok(false)
        }
        Err(error) => Err(failed("create", shown)(error)),
    }
}

/// The folder that holds `path`; a bare name lies in the current one.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
