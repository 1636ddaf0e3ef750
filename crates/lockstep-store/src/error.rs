//! What can go wrong with a place, with the path that it went wrong at.

use crate::checkpoint::Damaged;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A place could not be used as asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
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
    /// The folder that holds runs cannot be made or written to.
    #[error(
        "cannot write to the run store {}: {source}; set run.store to a folder that can be written",
        path.display()
    )]
    Unwritable {
        /// The store's folder.
        path: PathBuf,
        /// Why it cannot be written.
        source: io::Error,
    },
    /// A job's name cannot be part of a folder's name.
    #[error(
        "`{name}` cannot name a run: use 1 to 100 letters, digits, `-`, `_` or `.`, \
         the first of them a letter or a digit"
    )]
    Name {
        /// The name as given.
        name: String,
    },
    /// A folder is not that of a run.
    #[error("{} is not a run: it has no job.toml", path.display())]
    NotARun {
        /// The folder as given.
        path: PathBuf,
    },
    /// Another process trains this run.
    #[error("the run {name} is in use by another `lockstep run`: wait for it to end, or stop it")]
    InUse {
        /// The run's name.
        name: String,
    },
    /// The path leads to something that a write would destroy.
    #[error("{} is not a file but {found}: nothing was written", path.display())]
    NotAFile {
        /// What was to be written.
        path: PathBuf,
        /// What is there.
        found: &'static str,
    },
    /// A run has checkpoints, but none can be used.
    #[error("no checkpoint in {} is whole: {}", path.display(), listed(damaged))]
    NoWholeCheckpoint {
        /// The folder of the checkpoints.
        path: PathBuf,
        /// What is wrong with each, from the newest on.
        damaged: Vec<Damaged>,
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

fn listed(damaged: &[Damaged]) -> String {
    let each: Vec<String> = damaged.iter().map(ToString::to_string).collect();
    each.join("; ")
}

impl StoreError {
    /// For `map_err`: the failure of `action` on `path`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
        move |source| StoreError::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}
