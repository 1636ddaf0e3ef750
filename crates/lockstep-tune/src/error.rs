//! What can be wrong with a search, and what can go wrong while it goes on.

use lockstep_place::PlaceError;
use lockstep_runs::RunsError;

/// Why nothing can be searched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// A `--search` is not understood.
    #[error(
        "--search {given}: {why}; write KEY=log(1e-4,1e-1), KEY=uniform(0,0.5), KEY=int(16,256), or a list of values such as \
         KEY=[16, 32, 64]"
    )]
    Search {
        /// What was given.
        given: String,
        /// What is wrong with it.
        why: String,
    },
    /// Two searches vary one key.
    #[error("--search: the key {key} is there twice")]
    Twice {
        /// The key.
        key: String,
    },
    /// There is nothing to search.
    #[error(
        "nothing is to be searched: name a key with --search, such as --search 'train.optimizer.lr=log(1e-4,1e-1)'"
    )]
    Nothing,
    /// A number that must be at least one is not.
    #[error("{flag}: found 0, and it must be at least 1")]
    Zero {
        /// The flag.
        flag: &'static str,
    },
    /// A tuning that was written is another.
    #[error(
        "{folder} holds a search with other settings: {what}; give the same command, or leave --resume out"
    )]
    Other {
        /// Where it lies.
        folder: String,
        /// What differs.
        what: String,
    },
}

/// Why a search cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// What was asked for cannot be searched.
    #[error(transparent)]
    Tune(#[from] TuneError),
    /// The store cannot be used.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A run of the store cannot be used.
    #[error(transparent)]
    Runs(#[from] RunsError),
    /// What is known cannot be written.
    #[error(transparent)]
    Json(serde_json::Error),
    /// There is no such search.
    #[error("there is no search {name} in {store}")]
    NoSearch {
        /// Its name.
        name: String,
        /// The store.
        store: String,
        /// What the store says.
        source: PlaceError,
    },
    /// There is no search of the job.
    #[error("there is no search of this job in {store}")]
    NoneOfJob {
        /// The store.
        store: String,
    },
    /// The file of a search makes no sense.
    #[error("{path} is damaged")]
    Damaged {
        /// The file.
        path: String,
        /// Why.
        source: serde_json::Error,
    },
    /// The validation set is not measured by the metric.
    #[error("--metric {metric}: the validation set is not measured by that; there are {known}")]
    NotMeasured {
        /// The metric.
        metric: String,
        /// Those there are.
        known: String,
    },
    /// A script does not report the metric.
    #[error("--metric {metric}: the script reports {known} and no number of that name")]
    NotReported {
        /// The metric.
        metric: String,
        /// What it reports.
        known: String,
    },
    /// A script reported nothing.
    #[error("--metric {metric}: the script reported nothing")]
    NothingReported {
        /// The metric.
        metric: String,
    },
    /// A trial ended before its target, and nobody asked it to.
    #[error("trial {number} ended before epoch {epochs}")]
    EndedEarly {
        /// The trial.
        number: usize,
        /// Where it should have come to.
        epochs: u32,
    },
}
