//! What can go wrong with trees.

use crate::xgboost::XgboostError;
use lockstep_model::JobMisfit;
use std::convert::Infallible;

/// Why trees cannot be grown or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreesError {
    /// XGBoost says so.
    #[error(transparent)]
    Xgboost(#[from] XgboostError),
    /// A set cannot be used.
    #[error(transparent)]
    Data(#[from] lockstep_data::DataError),
    /// A file of the run cannot be used.
    #[error(transparent)]
    Runs(#[from] lockstep_runs::RunsError),
    /// A place cannot be used.
    #[error(transparent)]
    Place(#[from] lockstep_place::PlaceError),
    /// A file of this machine cannot be used.
    #[error(transparent)]
    Fs(#[from] lockstep_base::fs::FsError),
    /// A place of the job makes no sense.
    #[error(transparent)]
    Resolve(#[from] lockstep_resolve::ResolveError),
    /// The coordinator told something that this version does not understand.
    #[error("the assignment is not one of trees: {0}")]
    Assignment(serde_json::Error),
    /// Nothing to learn from.
    #[error("{set}: no rows are left to train on; data.val_split sets all of them aside")]
    NoRows {
        /// The set.
        set: String,
    },
    /// More is to be predicted than one number or class.
    #[error(
        "data.train.label: a row of {set} has several labels ({labels}), and trees predict one; name one column, and train a \
         model for each"
    )]
    SeveralTargets {
        /// The set.
        set: String,
        /// The columns, as they are named in a sentence.
        labels: String,
    },
    /// All rows are of one class.
    #[error("{set}: all rows are of the class {class:?}, so there is nothing to tell apart")]
    OneClass {
        /// The set.
        set: String,
        /// The class.
        class: String,
    },
    /// A key of the job does not fit the data, or another key.
    #[error("{key}: {reason}")]
    Misfit {
        /// The key.
        key: String,
        /// What does not fit, and what would.
        reason: String,
    },
    /// Rows on this machine are others than the coordinator's.
    #[error("{set}: the rows on this machine are not those that the coordinator found")]
    OtherRows {
        /// The set.
        set: String,
    },
    /// A measure is not a number any more.
    #[error(
        "the loss or another measure became infinite in round {round}: training diverged; a smaller model.eta or \
         model.max_delta_step may help"
    )]
    Diverged {
        /// The round, counted from 1.
        round: u32,
    },
    /// A state or a model cannot be used.
    #[error("{place}: {reason}")]
    Saved {
        /// Where it lies.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// This version of XGBoost writes models in another way than those that are known.
    #[error(
        "XGBoost's JSON of the model has no `{part}` where one is expected; use XGBoost 3.2 or 3.4"
    )]
    StrangeModel {
        /// What is missing.
        part: &'static str,
    },
    /// The workers could not meet.
    #[error(transparent)]
    Share(#[from] lockstep_learner::ShareError),
    /// The coordinator is gone.
    #[error(transparent)]
    Gang(#[from] lockstep_gang::GangError),
}

impl From<JobMisfit> for TreesError {
    fn from(JobMisfit { key, reason }: JobMisfit) -> Self {
        Self::Misfit { key, reason }
    }
}

impl TreesError {
    /// What the job says at `key` does not fit, for this reason.
    pub(crate) fn misfit(key: &str, reason: impl Into<String>) -> Self {
        Self::Misfit {
            key: key.to_owned(),
            reason: reason.into(),
        }
    }

    /// What was saved at `place` cannot be used, for this reason.
    pub(crate) fn saved(place: impl ToString, reason: impl Into<String>) -> Self {
        Self::Saved {
            place: place.to_string(),
            reason: reason.into(),
        }
    }
}

impl From<Infallible> for TreesError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}
