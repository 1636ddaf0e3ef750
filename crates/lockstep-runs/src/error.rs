//! What can go wrong with a run's folder, with the path that it went wrong at.

use crate::checkpoint::Damaged;
use lockstep_fs::FsError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// A run or its store could not be used as asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunsError {
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
    /// A run has checkpoints, but none can be used.
    #[error("no checkpoint in {} is whole: {}", path.display(), listed(damaged))]
    NoWholeCheckpoint {
        /// The folder of the checkpoints.
        path: PathBuf,
        /// What is wrong with each, from the newest on.
        damaged: Vec<Damaged>,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    Fs(#[from] FsError),
}

fn listed(damaged: &[Damaged]) -> String {
    let each: Vec<String> = damaged.iter().map(ToString::to_string).collect();
    each.join("; ")
}
