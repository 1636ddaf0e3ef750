//! Why a script cannot be started, or not go on.

use lockstep_data::DataError;
use lockstep_learner::ShareError;
use lockstep_place::PlaceError;
use lockstep_resolve::ResolveError;
use lockstep_runs::RunsError;
use std::io;
use std::path::PathBuf;

/// Why a script cannot be started, or not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The job cannot be understood.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// A data set cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A place cannot be reached.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The run's folder cannot be used.
    #[error(transparent)]
    Runs(#[from] RunsError),
    /// A file of the checkpoint that the run goes on from is damaged.
    #[error("{0}")]
    Damaged(String),
    /// The assignment is not one for a script.
    #[error("cannot understand the assignment of a script: {0}")]
    Assignment(serde_json::Error),
    /// The workers did not find each other.
    #[error(transparent)]
    Share(#[from] ShareError),
    /// A file that a script reported cannot be read.
    #[error("cannot read {}, which the script reported as a part of a checkpoint: {source}", path.display())]
    Reported {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused something.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The script ended with an error.
    #[error("its script {end}{}", beside(.words))]
    Ended {
        /// How, such as `ended with exit code 1`.
        end: String,
        /// What it said last.
        words: String,
    },
}

impl ScriptError {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}

fn beside(words: &str) -> String {
    match words {
        "" => String::new(),
        words => format!(": {words}"),
    }
}
