//! What can go wrong with a queue.

use crate::JobStatus;
use lockstep_base::fs::FsError;
use std::path::{Path, PathBuf};

/// What can go wrong with a queue.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// A file or folder of the queue cannot be used.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The same, from below.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// Another process serves the queue.
    #[error("{path} is served by another process; a queue has one server at a time", path = path.display())]
    InUse {
        /// The queue's folder.
        path: PathBuf,
    },
    /// Jobs cannot run as the user that was named.
    #[error("--job-user: {0}")]
    JobUser(String),
    /// A submission cannot be.
    #[error("{0}")]
    Wrong(String),
    /// There is a job of that id.
    #[error("Job with submission_id {0} already exists. Please use a different submission_id.")]
    Exists(String),
    /// There is no job of that id.
    #[error("Job {0} does not exist")]
    Missing(String),
    /// A job that has not ended cannot be removed.
    #[error("Attempted to delete job '{id}', but it is in a non-terminal state {}.", status.in_capitals())]
    NotEnded {
        /// Which.
        id: String,
        /// How it is.
        status: JobStatus,
    },
    /// A job that another waits for cannot be removed.
    #[error("Attempted to delete job '{id}', but the job '{by}' is to run after it.")]
    Needed {
        /// Which.
        id: String,
        /// Who waits.
        by: String,
    },
    /// A package of that name is there, and another.
    #[error(
        "there is a package {0} with another content; a package's name says its content, so send this one under another \
         name"
    )]
    Taken(String),
    /// Whoever asks may not have a job begin before those of others.
    #[error("metadata lockstep.priority: {asked} is not for you; {highest} is the highest")]
    Priority {
        /// What was asked.
        asked: i64,
        /// What may be asked.
        highest: i64,
    },
    /// A package is larger than what is accepted.
    #[error("Maximum request body size {limit} exceeded.")]
    TooLarge {
        /// The most bytes.
        limit: u64,
    },
}

impl QueueError {
    /// Whether it may be gone later: the system had no room for more files or processes.
    pub fn is_passing(&self) -> bool {
        let source = match self {
            QueueError::File { source, .. } | QueueError::Fs(FsError::Io { source, .. }) => source,
            _ => return false,
        };
        crate::keeper::lacks_room(source)
    }

    /// Puts a path to an error.
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> QueueError {
        let path = path.to_owned();
        move |source| QueueError::File { path, source }
    }
}
