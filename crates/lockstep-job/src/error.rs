//! Why a job could not be read.

use crate::Diagnostic;
use std::io;
use std::path::PathBuf;

/// Why a job could not be read.
///
/// The text of every variant reads well after `error: `.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// There is no such file.
    #[error("there is no job file {path:?}; `lockstep init` writes one to start from")]
    Missing {
        /// The file that was asked for.
        path: PathBuf,
    },
    /// What is there is not a file that can be read from its beginning to its end.
    #[error("the job file {path:?} is {kind}, not a regular file")]
    NotAFile {
        /// The file that was asked for.
        path: PathBuf,
        /// What it is, such as `a folder`.
        kind: &'static str,
    },
    /// The file, or the folder it lies in, cannot be read.
    #[error("cannot read the job file {path:?}")]
    Read {
        /// The file that was asked for.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The job's folder has a name that cannot be written in a job or sent to a worker.
    #[error("the folder {path:?} of the job file has a name that is not UTF-8; move the job file")]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// The job is not right; each diagnostic says where and what would be.
    #[error("{}", joined(.0))]
    Invalid(Vec<Diagnostic>),
    /// The job is a script, which knows no network.
    #[error(
        "the job file {path:?} describes a script (`train.command`), which `lockstep run` starts; this command \
         is for networks"
    )]
    Script {
        /// The file.
        path: PathBuf,
    },
    /// The job grows trees, which are no network.
    #[error(
        "the job file {path:?} describes trees (`model.kind = \"xgboost\"`); this command is for networks"
    )]
    Trees {
        /// The file.
        path: PathBuf,
    },
    /// What a run has kept of its job lacks a secret.
    #[error(
        "secrets are not kept with a run, and the job had one in `{key}`: give it again with --set '{key}={example}'"
    )]
    LeftOut {
        /// The key.
        key: String,
        /// How its value is written.
        example: &'static str,
    },
    /// An override is not of the form `key=value`.
    #[error("{reason}; write it as key=value, for example train.epochs=3")]
    Override {
        /// What is wrong with it.
        reason: String,
    },
}

impl JobError {
    /// What is wrong with the job, piece by piece; empty if it could not even be read.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            JobError::Invalid(diagnostics) => diagnostics,
            _ => &[],
        }
    }
}

/// All diagnostics as one text, in which each but the first has an `error: ` of its own.
fn joined(diagnostics: &[Diagnostic]) -> String {
    let shown: Vec<String> = diagnostics.iter().map(Diagnostic::to_string).collect();
    shown.join("\n\nerror: ")
}
