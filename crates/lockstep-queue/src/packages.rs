//! Packages that were sent for jobs: one file each, under the name that the client gave.
//!
//! A package is kept for as long as a job in the queue names it, and for a while after it was last asked for: a client
//! asks whether it is there, and then submits.

use crate::QueueError;
use crate::id::is_package_name;
use lockstep_base::fs::{AtomicFile, is_older, remove_leftover};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How long a package that no job names is kept after it was last asked for.
const UNUSED: Duration = Duration::from_secs(10 * 60);

/// The folder of packages.
#[derive(Debug, Clone)]
pub struct Packages {
    folder: PathBuf,
    limit: u64,
}

/// A package that is on its way.
#[derive(Debug)]
pub struct Upload {
    file: AtomicFile,
    path: PathBuf,
    written: u64,
    limit: u64,
}

impl Packages {
    /// The packages in `folder`, each of at most `limit` bytes.
    pub(crate) fn open(folder: PathBuf, limit: u64) -> Result<Packages, QueueError> {
        fs::create_dir_all(&folder).map_err(QueueError::file(&folder))?;
        Ok(Packages { folder, limit })
    }

    /// The largest package that is accepted, in bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Whether a package is there. It is then kept for a while, for the job that is about to name it.
    pub fn has(&self, name: &str) -> bool {
        let Some(path) = self.path(name) else {
            return false;
        };
        let Ok(file) = File::options().append(true).open(path) else {
            return false;
        };
        // If that fails, the package is only dropped and sent once more.
        let _ = file.set_modified(SystemTime::now());
        true
    }

    /// Begins to write a package, of which a client says that it has `length` bytes.
    ///
    /// # Errors
    /// When the name is none, when it is too large, or when the disk refuses.
    pub fn upload(&self, name: &str, length: Option<u64>) -> Result<Upload, QueueError> {
        let limit = self.limit;
        if length.is_some_and(|length| length > limit) {
            return Err(QueueError::TooLarge { limit });
        }
        let path = self.path(name).ok_or_else(|| {
            QueueError::Wrong(format!("{name:?} is no name of a .zip or .whl package"))
        })?;
        Ok(Upload {
            file: AtomicFile::create(&path)?,
            path,
            written: 0,
            limit,
        })
    }

    /// The file of a package, if it may have that name.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        is_package_name(name).then(|| self.folder.join(name))
    }

    /// Removes packages that no job names and that nobody asked for lately.
    pub(crate) fn remove_unused(&self, named: &BTreeSet<String>) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let used = name.to_str().is_some_and(|name| named.contains(name));
            let old = entry.metadata().is_ok_and(|found| is_older(&found, UNUSED));
            if !remove_leftover(&path) && old && !used {
                // What stays is tried again.
                let _ = fs::remove_file(&path);
            }
        }
    }
}

impl Upload {
    /// Adds a piece.
    ///
    /// # Errors
    /// When it becomes too large, or the disk refuses.
    pub fn write(&mut self, piece: &[u8]) -> Result<(), QueueError> {
        self.written += piece.len() as u64;
        if self.written > self.limit {
            return Err(QueueError::TooLarge { limit: self.limit });
        }
        let written = self.file.write_all(piece);
        written.map_err(QueueError::file(&self.path))
    }

    /// Gives the package its name. Until then, it is not there.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn finish(self) -> Result<(), QueueError> {
        Ok(self.file.commit()?)
    }
}

/// The name of the package behind an address of a runtime environment; none if it is not one of ours.
pub(crate) fn package_of(uri: &str) -> Option<&str> {
    uri.strip_prefix("gcs://")
}

/// All packages that a runtime environment names.
pub(crate) fn packages_in(
    runtime_env: &std::collections::BTreeMap<String, serde_json::Value>,
) -> Vec<String> {
    let mut found = Vec::new();
    let one = runtime_env.get("working_dir").and_then(|v| v.as_str());
    let several = runtime_env.get("py_modules").and_then(|v| v.as_array());
    let several = several.into_iter().flatten().filter_map(|v| v.as_str());
    for uri in one.into_iter().chain(several) {
        found.extend(package_of(uri).map(str::to_owned));
    }
    found
}

/// Where packages lie, seen from a job's folder.
pub(crate) fn beside(job: &Path) -> Option<PathBuf> {
    Some(job.parent()?.parent()?.join("packages"))
}
