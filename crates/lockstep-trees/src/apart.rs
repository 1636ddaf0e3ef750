//! What a rank does with XGBoost by itself.
//!
//! XGBoost compares the number of columns over all ranks whenever a matrix is made. A rank without rows makes none, and one
//! with more rows makes more of them. So a matrix that not all ranks make together is made where XGBoost knows no ranks.

use crate::TreesError;
use crate::xgboost::{Matrix, Xgboost};
use std::thread;

/// Does something in a thread of its own: there, XGBoost knows nothing of the gang.
pub(crate) fn apart<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| {
        let work = scope.spawn(work);
        work.join().expect("making a matrix does not panic")
    })
}

/// Rows to predict, which no other rank needs to know of.
pub(crate) fn own_matrix(
    xgboost: &Xgboost,
    values: &[f32],
    columns: usize,
    threads: usize,
) -> Result<Matrix, TreesError> {
    Ok(apart(|| Matrix::plain(xgboost, values, columns, threads))?)
}
