//! What can go wrong with a file, with the path that it went wrong at.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A file or a folder could not be used as asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FsError {
    /// None of the variables that lead to the cache folder is set.
    #[error(
        "there is no place for the cache: none of LOCKSTEP_CACHE, XDG_CACHE_HOME and HOME is set; \
         set LOCKSTEP_CACHE to a folder that can be written"
    )]
    NoCachePlace,
    /// The cache folder cannot be made.
    #[error(
        "cannot create the cache folder {}: {source}; set LOCKSTEP_CACHE to a folder that can be written",
        path.display()
    )]
    Cache {
        /// The folder that was to be made.
        path: PathBuf,
        /// Why it could not be.
        source: io::Error,
    },
    /// The variable that limits the cache says no amount.
    #[error("LOCKSTEP_CACHE_LIMIT cannot be {found:?}; {}", crate::amount::EXAMPLE)]
    CacheLimit {
        /// What it says.
        found: String,
    },
    /// The path leads to something that a write would destroy.
    #[error("{} is not a file but {found}: nothing was written", path.display())]
    NotAFile {
        /// What was to be written.
        path: PathBuf,
        /// What is there.
        found: &'static str,
    },
    /// The system's source of randomness failed.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
    /// Any other failure of the file system.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// What it was tried on.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl FsError {
    /// For `map_err`: the failure of `action` on `path`.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FsError {
        move |source| FsError::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}
