//! Why a trained model cannot be used.

use crate::EngineError;
use lockstep_base::fs::FsError;
use lockstep_data::DataError;
use lockstep_job::JobError;
use lockstep_learner::LearnerError;
use lockstep_place::PlaceError;
use lockstep_resolve::ResolveError;
use lockstep_runs::RunsError;
use lockstep_runs::registry::RegistryError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a trained model, or what it is to look at, cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InferError {
    /// A change to the run's job, or the job with it, is wrong.
    #[error(transparent)]
    Job(#[from] JobError),
    /// What the job means cannot be found out.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// A place cannot be reached.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The run or its store cannot be used.
    #[error(transparent)]
    Runs(#[from] RunsError),
    /// The registry does not have the model.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The samples cannot be opened.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The model cannot be opened, or does not fit the samples.
    #[error(transparent)]
    Learner(#[from] LearnerError),
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] FsError),
    /// The workers failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The path of a run cannot be a name in a store.
    #[error("the run's path is not valid UTF-8: {}", path.display())]
    RunPath {
        /// The path.
        path: PathBuf,
    },
    /// Another process still trains the run.
    #[error("{run} has not ended, so it has no model yet")]
    NotEnded {
        /// The run's name.
        run: String,
        /// Why it is taken to be trained.
        source: Box<RunsError>,
    },
    /// Nothing says what the model is to look at.
    #[error("the job of {run} has no data.test; name a set with --data")]
    NoSamples {
        /// The run's name.
        run: String,
    },
    /// A way to compute was asked for that the model does not have.
    #[error(
        "the model of {run} is no network, and only networks can be computed in another way; leave out {option}"
    )]
    NoNetwork {
        /// What asks for it.
        option: &'static str,
        /// The run's name.
        run: String,
    },
    /// The encoder that made the vectors which the model was trained on is gone.
    #[error(
        "{run} was trained on vectors of an encoder that is not at {} (SHA-256 {sha256}); say where it is: --set \
         embed.model=PATH",
        path.display()
    )]
    NoEncoder {
        /// The run's name.
        run: String,
        /// Where it was.
        path: PathBuf,
        /// The hash of its file.
        sha256: String,
    },
    /// The current folder is not known, which relative paths are of.
    #[error("cannot find the current folder")]
    CurrentFolder(#[source] io::Error),
}
