//! Everything that can stop a worker, or a job before it has any.

use lockstep_base::fs::FsError;
use lockstep_data::DataError;
use lockstep_gang::GangError;
use lockstep_learner::JoinError;
use lockstep_model::JobMisfit;
use lockstep_nn::NnError;
use lockstep_place::{Place, PlaceError};
use lockstep_resolve::ResolveError;
use lockstep_runs::RunsError;
use std::io;
use std::path::PathBuf;

/// Why a job cannot be prepared or trained.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The data cannot be used.
    #[error(transparent)]
    Data(#[from] DataError),

    /// A GPU cannot be used, or failed.
    #[error(transparent)]
    Cuda(#[from] lockstep_cuda::CudaError),

    /// The job cannot be understood.
    #[error(transparent)]
    Resolve(#[from] ResolveError),

    /// A place of the job makes no sense, or cannot be reached.
    #[error(transparent)]
    Place(#[from] PlaceError),

    /// The model cannot be built.
    #[error("{key}: {source}")]
    Model {
        /// The key of the job file.
        key: String,
        /// What cannot be built, and why.
        source: NnError,
    },

    /// What the coordinator says to do makes no sense here.
    #[error("cannot read what this worker is to do: {0}")]
    Assignment(serde_json::Error),

    /// The gang cannot be entered.
    #[error(transparent)]
    Join(JoinError),

    /// The gang fell apart.
    #[error(transparent)]
    Gang(#[from] GangError),

    /// A copy of the state in shared memory cannot be used.
    #[error("the copy of the state in shared memory cannot be used: {what}")]
    Copy {
        /// What is wrong with it.
        what: String,
    },

    /// A file or a folder cannot be used.
    #[error(transparent)]
    File(#[from] FsError),

    /// The run or its store cannot be used.
    #[error(transparent)]
    Store(#[from] RunsError),

    /// The job does not fit its data.
    #[error("{key}: {reason}")]
    Misfit {
        /// The key of the job file.
        key: String,
        /// What was found, and what would be right.
        reason: String,
    },

    /// The weights to begin with cannot be used.
    #[error("model.weights: cannot begin with {path}: {reason}")]
    Pretrained {
        /// The file.
        path: PathBuf,
        /// What was found, and what would be right.
        reason: String,
    },

    /// The model that a run left cannot be used.
    #[error("cannot use the trained model {path}: {reason}")]
    Trained {
        /// The file.
        path: PathBuf,
        /// What was found, and what would be right.
        reason: String,
    },

    /// A state that a run left cannot be gone on from.
    #[error("cannot go on from {path}: {reason}")]
    Resume {
        /// The state's file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },

    /// The system gives no further thread.
    #[error("cannot start the thread that writes checkpoints: {0}")]
    Thread(io::Error),

    /// The loss is not a number any more.
    #[error(
        "the loss became {loss} at step {step} (epoch {epoch}): training diverged; a smaller \
         train.optimizer.lr or train.clip_norm may help"
    )]
    Diverged {
        /// What it became.
        loss: f64,
        /// The step, counted from 1.
        step: u64,
        /// The epoch, counted from 1.
        epoch: u32,
    },

    /// The weights cannot be put into a file.
    #[error("cannot write {path}: {reason}")]
    Weights {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },

    /// Two workers compute different bits.
    #[error(
        "rank {rank} computes other bits than rank 0 (numerics {found:016x}, not {expected:016x}): \
         all workers must run the same version of this program"
    )]
    Numerics {
        /// The rank that differs.
        rank: usize,
        /// Its fingerprint.
        found: u64,
        /// Rank 0's.
        expected: u64,
    },
}

impl From<JoinError> for TrainError {
    fn from(error: JoinError) -> Self {
        match error {
            JoinError::Gang(error) => error.into(),
            other => Self::Join(other),
        }
    }
}

impl From<JobMisfit> for TrainError {
    fn from(JobMisfit { key, reason }: JobMisfit) -> Self {
        Self::Misfit { key, reason }
    }
}

impl TrainError {
    /// What the job says at `key` does not fit, for this reason.
    pub(crate) fn misfit(key: &str, reason: impl Into<String>) -> Self {
        Self::Misfit {
            key: key.to_owned(),
            reason: reason.into(),
        }
    }

    /// The checkpoint at `place` cannot be gone on from, for this reason.
    pub(crate) fn resume(place: &Place, reason: impl Into<String>) -> Self {
        Self::Resume {
            path: place.to_string().into(),
            reason: reason.into(),
        }
    }

    /// The rank that was waited for in vain, if that is what went wrong.
    pub fn waiting_for(&self) -> Option<usize> {
        match self {
            Self::Gang(GangError::PeerTimeout { rank, .. }) => Some(*rank),
            _ => None,
        }
    }

    /// Whether this is only the consequence of another worker's failure.
    pub fn is_peer_lost(&self) -> bool {
        matches!(self, Self::Gang(error) if error.is_peer_lost())
    }
}
