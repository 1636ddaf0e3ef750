//! The Python package `lockstep`, which the binary carries and puts on a script's path.

use crate::ScriptError;
use lockstep_base::fs::{CacheDir, sha256};
use lockstep_runs::RunsError;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

/// The files, each with its path below the folder that is put on the path.
const FILES: &[(&str, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/package_files.rs"));

/// The folder that holds the package, made in the cache if it is not there.
pub(crate) fn folder() -> Result<PathBuf, ScriptError> {
    let mut all = Vec::new();
    for (name, bytes) in FILES {
        all.extend_from_slice(name.as_bytes());
        all.extend_from_slice(bytes);
    }
    let cache = CacheDir::locate().map_err(RunsError::from)?;
    let above = cache.folder("python-package").map_err(RunsError::from)?;
    let folder = above.join(&sha256(&all)[..16]);
    if folder.is_dir() {
        return Ok(folder);
    }
    // Others may make it at the same time: the first to be done wins.
    let failed = || ScriptError::system("write the Python package into the cache");
    let made = tempfile::tempdir_in(&above).map_err(failed())?;
    for (name, bytes) in FILES {
        let path = made.path().join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed())?;
        }
        fs::write(path, bytes).map_err(failed())?;
    }
    match fs::rename(made.keep(), &folder) {
        Err(error) if !folder.is_dir() => Err(failed()(error)),
        _ => Ok(folder),
    }
}

/// A path of Python's modules that begins with the package.
pub(crate) fn python_path(before: Option<OsString>) -> Result<OsString, ScriptError> {
    let mut path = folder()?.into_os_string();
    if let Some(before) = before.filter(|before| !before.is_empty()) {
        path.push(":");
        path.push(before);
    }
    Ok(path)
}
