//! How far each column moves what a model says: the mean size of its contributions (SHAP values) to the margins of rows
//! that were not trained on.
//!
//! XGBoost computes the contributions of a row from that row alone, so it does not matter which rank does it. Sizes are
//! added up exactly, so it does not matter either how the rows are divided.

use crate::apart::own_matrix;
use crate::exact_sum::exact_sums;
use crate::shard::{self, own_part};
use crate::xgboost::{Booster, Importance, Predicted, Xgboost};
use crate::{Together, TreesError};
use lockstep_data::Dataset;
use std::array;

/// Rows that are looked at, at most.
const MOST_ROWS: usize = 1000;
/// Rows that are looked at however long it takes.
const FEWEST_ROWS: usize = 50;
/// Columns whose contributions are summed over the ranks at once.
const SUMMED_COLUMNS: usize = 64;
/// What all rows may cost, in splits times the square of the depth: a processor does some 10^8 of these in half a second.
const COST: f64 = 1e8;

/// The mean size of each column's contributions, those to several outputs added up; over some of these rows of a set, evenly
/// spread. All ranks come here together, and all have the same result.
pub(crate) fn mean_sizes<T: Together>(
    (xgboost, booster): (&Xgboost, &mut Booster),
    (set, rows): (&Dataset, &[u32]),
    threads: usize,
    together: &T,
) -> Result<Vec<f64>, TreesError>
where
    TreesError: From<T::Error>,
{
    let columns = set.sample_len();
    let splits = booster.importance(Importance::Weight)?;
    let splits = splits.iter().map(|(_, splits)| f64::from(*splits)).sum();
    let looked_at = spread(rows, rows_for(splits, booster.rounds()?));
    let own = &looked_at[own_part(looked_at.len(), together.rank(), together.ranks())];
    let contributions = match own.is_empty() {
        true => Vec::new(),
        false => {
            let matrix = own_matrix(xgboost, &shard::values(set, own), columns, threads)?;
            booster.predict(&matrix, Predicted::Contributions)?.0
        }
    };
    let count = looked_at.len().max(1) as f64;
    let mut means = Vec::with_capacity(columns);
    for first in (0..columns).step_by(SUMMED_COLUMNS) {
        // The last of each output is what is said without any column.
        let sums: [f64; SUMMED_COLUMNS] = exact_sums(together, || {
            contributions.chunks_exact(columns + 1).map(|one_output| {
                let of_columns = &one_output[first..columns];
                array::from_fn(|place| of_columns.get(place).map_or(0.0, |x| f64::from(x.abs())))
            })
        })?;
        means.extend(sums.iter().take(columns - first).map(|sum| sum / count));
    }
    Ok(means)
}

/// How many rows are looked at with a model of so many splits and rounds. Contributions take far longer than predictions,
/// and grow with the square of the depth.
fn rows_for(splits: f64, rounds: usize) -> usize {
    let depth = (splits / rounds.max(1) as f64 + 1.0).log2().ceil().max(1.0);
    let rows = COST / (splits.max(1.0) * depth * depth);
    (rows as usize).clamp(FEWEST_ROWS, MOST_ROWS)
}

/// At most so many rows, from the first on and as far from each other.
fn spread(rows: &[u32], most: usize) -> Vec<u32> {
    let count = rows.len().min(most);
    (0..count)
        .map(|place| rows[place * rows.len() / count])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{rows_for, spread};

    #[test]
    fn the_larger_the_model_the_fewer_rows_are_looked_at() {
        assert_eq!(rows_for(0.0, 0), 1000);
        assert_eq!(rows_for(12.0 * 15.0, 12), 1000);
        assert_eq!(rows_for(100.0 * 63.0, 100), 440);
        assert_eq!(rows_for(100.0 * 1023.0, 100), 50);
    }

    #[test]
    fn rows_are_spread_evenly_and_few_are_all_taken() {
        let rows: Vec<u32> = (5..25).collect();
        assert_eq!(spread(&rows, 4), [5, 10, 15, 20]);
        assert_eq!(spread(&rows, 20), rows);
        assert_eq!(spread(&rows, 99), rows);
        assert!(spread(&[], 4).is_empty());
    }
}
