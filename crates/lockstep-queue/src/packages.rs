//! Packages that were sent for jobs: one file each, under the name that the client gave, in a folder of whoever sent it.
//!
//! A name says what a package holds, so a package is written once: nobody can put another under a name that is taken, and
//! nobody sees or replaces those of others. It is kept for as long as a job in the queue names it, and for a while after
//! it was last asked for: a client asks whether it is there, and then submits.

use crate::id::is_package_name;
use crate::{JobRecord, QueueError};
use lockstep_base::fs::{AtomicFile, remove_leftover, sha256_of_file};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a package that no job names is kept after it was last asked for.
const UNUSED: Duration = Duration::from_secs(10 * 60);

/// The folder of packages. A clone is the same folder.
#[derive(Debug, Clone)]
pub struct Packages {
    folder: PathBuf,
    limit: u64,
    /// When each was last asked for, or first seen, by a clock that nobody sets.
    asked: Arc<Mutex<BTreeMap<PathBuf, Instant>>>,
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
        Ok(Packages {
            folder,
            limit,
            asked: Arc::default(),
        })
    }

    /// The largest package that is accepted, in bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Whether `user` has sent a package of this name. It is then kept for a while, for the job that is about to name it.
    pub fn has(&self, user: &str, name: &str) -> bool {
        let Some(path) = self.path(Some(user), name).filter(|path| path.is_file()) else {
            return false;
        };
        self.asked().insert(path, Instant::now());
        true
    }

    /// Begins to write a package of `user`, of which a client says that it has `length` bytes.
    ///
    /// # Errors
    /// When the name is none, when it is too large, or when the disk refuses.
    pub fn upload(
        &self,
        user: &str,
        name: &str,
        length: Option<u64>,
    ) -> Result<Upload, QueueError> {
        let limit = self.limit;
        if length.is_some_and(|length| length > limit) {
            return Err(QueueError::TooLarge { limit });
        }
        let path = self.path(Some(user), name).ok_or_else(|| {
            QueueError::Wrong(format!("{name:?} is no name of a .zip or .whl package"))
        })?;
        let own = self.folder_of(user);
        fs::create_dir_all(&own).map_err(QueueError::file(&own))?;
        self.asked().insert(path.clone(), Instant::now());
        Ok(Upload {
            file: AtomicFile::create(&path)?,
            path,
            written: 0,
            limit,
        })
    }

    /// The file of a package that `owner` sent, if it may have that name. Those of before packages had owners lie in the
    /// folder itself.
    pub(crate) fn path(&self, owner: Option<&str>, name: &str) -> Option<PathBuf> {
        let folder = owner.map_or_else(|| self.folder.clone(), |owner| self.folder_of(owner));
        is_package_name(name).then(|| folder.join(name))
    }

    /// Names of users are plain; what is not can at least not lead elsewhere.
    fn folder_of(&self, user: &str) -> PathBuf {
        let plain = |c: char| match c {
            c if c.is_ascii_alphanumeric() || "-_.@".contains(c) => c,
            _ => '_',
        };
        let plain: String = user.chars().map(plain).collect();
        self.folder.join(format!("of-{plain}"))
    }

    /// Removes packages that no job names and that nobody asked for lately.
    pub(crate) fn remove_unused(&self, named: &BTreeSet<PathBuf>) {
        let mut there = BTreeSet::new();
        for folder in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = folder.path();
            match folder.file_type().is_ok_and(|kind| kind.is_dir()) {
                true => {
                    let inner = fs::read_dir(&path).into_iter().flatten().flatten();
                    there.extend(inner.map(|entry| entry.path()));
                }
                false => drop(there.insert(path)),
            }
        }
        let mut asked = self.asked();
        asked.retain(|path, _| there.contains(path));
        for path in there {
            if remove_leftover(&path) || named.contains(&path) {
                asked.remove(&path);
                continue;
            }
            let seen = *asked.entry(path.clone()).or_insert_with(Instant::now);
            if seen.elapsed() >= UNUSED {
                // What stays is tried again.
                let _ = fs::remove_file(&path);
            }
        }
    }

    fn asked(&self) -> std::sync::MutexGuard<'_, BTreeMap<PathBuf, Instant>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// When there is one of that name with another content, or the disk refuses.
    pub fn finish(self) -> Result<(), QueueError> {
        let sent = sha256_of_file(self.file.temporary()).map_err(QueueError::file(&self.path))?;
        if self.file.commit_new()? {
            return Ok(());
        }
        match sha256_of_file(&self.path).map_err(QueueError::file(&self.path))? == sent {
            true => Ok(()),
            false => Err(QueueError::Taken(
                self.path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned(),
            )),
        }
    }
}

/// The name of the package behind an address of a runtime environment; none if it is not one of ours.
pub(crate) fn package_of(uri: &str) -> Option<&str> {
    uri.strip_prefix("gcs://")
}

/// All packages that a job names.
pub(crate) fn packages_of(asked: &JobRecord) -> Vec<&str> {
    let one = asked
        .runtime_env
        .get("working_dir")
        .and_then(|v| v.as_str());
    let several = asked
        .runtime_env
        .get("py_modules")
        .and_then(|v| v.as_array());
    let several = several.into_iter().flatten().filter_map(|v| v.as_str());
    let named = one.into_iter().chain(several);
    named.filter_map(package_of).collect()
}

/// Where packages lie, seen from a job's folder.
pub(crate) fn beside(job: &Path) -> Option<PathBuf> {
    Some(job.parent()?.parent()?.join("packages"))
}
