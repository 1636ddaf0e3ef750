//! What can go wrong on a job's way to a cluster, and while it is followed there.

use crate::jobs::{JobStatus, JobsError};
use crate::kube::KubeError;
use lockstep_base::fs::FsError;
use lockstep_job::JobError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// What can go wrong on a job's way to a cluster, and while it is followed there.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// A head cannot be reached, or refuses.
    #[error(transparent)]
    Jobs(#[from] JobsError),
    /// Kubernetes cannot be reached, or refuses.
    #[error(transparent)]
    Kube(#[from] KubeError),
    /// The job file is wrong.
    #[error(transparent)]
    Job(#[from] JobError),
    /// There are no random letters.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// The current folder is not known.
    #[error(transparent)]
    Folder(io::Error),
    /// A file cannot be read.
    #[error("cannot read {path}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// This program cannot send itself.
    #[error("cannot find this program's own file")]
    OwnProgram(#[source] io::Error),
    /// A file that is to travel is not there.
    #[error(
        "{key}: {path} does not exist; a path that is there on the cluster alone must be absolute",
        path = path.display()
    )]
    MissingInput {
        /// The key of the job file that names it.
        key: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// A file that is to travel cannot be read.
    #[error("{key}: {path} cannot be packed", path = path.display())]
    Pack {
        /// The key of the job file that names it.
        key: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A name that a package cannot hold.
    #[error("the name of {path} is not valid UTF-8", path = path.display())]
    NoText {
        /// The file.
        path: PathBuf,
    },
    /// A store that only one node has, for workers that cannot all be there.
    #[error(
        "run.store: `{store}` would be a folder beside the job on one node of the cluster, and {why}; set run.store to a URL \
         or to an absolute path that the nodes share"
    )]
    StoreOfOneNode {
        /// What the store is called.
        store: String,
        /// Why one node does not do.
        why: String,
    },
    /// `--working-dir` is no folder.
    #[error("--working-dir: {path} is not a folder", path = path.display())]
    WorkingDir {
        /// What was given.
        path: PathBuf,
    },
    /// Options that pods have no use for.
    #[error(
        "--fork, --binary and --env are not for --to kube: pods run the `lockstep` of their image, with the variables of \
         kube.env"
    )]
    NotForKube,
    /// A run to go on with that is not named.
    #[error("--resume needs the run's name with --to kube")]
    ResumeWithoutName,
    /// A command for Kubernetes.
    #[error(
        "on Kubernetes a job file is run; a command goes to `lockstep serve` or to a Ray head, or into the job file as a \
         script"
    )]
    CommandOnKube,
    /// A place in a queue that Kubernetes does not have.
    #[error(
        "Kubernetes has no words for --priority, --after, --retries and --retry-code; `lockstep serve` has"
    )]
    NoQueueOnKube,
    /// A place in a queue that a Ray head does not have.
    #[error(
        "{address} is a Ray head, which has no words for --priority, --after, --retries and --retry-code; `lockstep serve` \
         has"
    )]
    NoQueueOnRay {
        /// The head.
        address: String,
    },
    /// A run has told its result, and nobody says that its job has ended.
    #[error(
        "{who} did not tell the end of the job `{id}` for {seconds} s ({cause}). How it ends is not known; it may well go \
         on: `{again}`"
    )]
    NoEnd {
        /// Who was asked.
        who: &'static str,
        /// The job.
        id: String,
        /// How long.
        seconds: u64,
        /// The last answer.
        cause: String,
        /// The command that follows it again.
        again: String,
    },
    /// A job that was asked to stop goes on.
    #[error("the job `{id}` was asked to stop and is still {status} after {seconds} s")]
    NotStopped {
        /// The job.
        id: String,
        /// How it is.
        status: JobStatus,
        /// How long it was waited for.
        seconds: u64,
    },
}

impl ClusterError {
    /// Whether it may be another in a moment: the network, or a server that is busy or being started.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Jobs(error) => error.is_passing(),
            Self::Kube(error) => error.is_passing(),
            _ => false,
        }
    }
}
