//! What is done to folders and names, in one place, so that it can be written down.
//!
//! A file system may lose whatever was not synced when the power fails. In builds with debug assertions
//! a test can therefore keep a [`log`](crate::fs::log) of everything that is done through here and through
//! [`AtomicFile`](crate::fs::AtomicFile), and look at what every cut would leave.

use crate::fs::FsError;
use crate::fs::log::{Operation, note};
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Makes a folder that must not be there; the one that holds it must be.
///
/// # Errors
/// When it cannot be made.
pub fn create_folder(path: &Path) -> io::Result<()> {
    fs::create_dir(path)?;
    note(|| Operation::CreateFolder(path.to_owned()));
    Ok(())
}

/// Removes a file.
///
/// # Errors
/// When there is none, or it cannot be removed.
pub fn remove_file(path: &Path) -> io::Result<()> {
    fs::remove_file(path)?;
    note(|| Operation::Remove(path.to_owned()));
    Ok(())
}

/// Removes a folder and all that is in it.
///
/// # Errors
/// When there is none, or something in it cannot be removed.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    note(|| Operation::Remove(path.to_owned()));
    fs::remove_dir_all(path)
}

/// Waits until the names of a folder's files are safe on the disk.
///
/// # Errors
/// When the folder cannot be opened, or the disk refuses.
pub fn sync_folder(folder: &Path) -> Result<(), FsError> {
    crate::failpoint::reach("fs.sync");
    crate::progress::advance();
    let synced = File::open(folder).and_then(|opened| opened.sync_all());
    synced.map_err(FsError::io("sync the folder", folder))?;
    note(|| Operation::SyncFolder(folder.to_owned()));
    Ok(())
}
