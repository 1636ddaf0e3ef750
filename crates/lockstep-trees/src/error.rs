//! What can go wrong with trees.

use lockstep_xgboost::XgboostError;
use std::convert::Infallible;

/// Why trees cannot be trained or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreesError {
    /// XGBoost says so.
    #[error(transparent)]
    Xgboost(#[from] XgboostError),
}

impl From<Infallible> for TreesError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}
