//! Where columns are cut into bins: exact order statistics of all rows, whoever has them.
//!
//! A column with no more distinct values than bins is cut at each of them. Any other is cut at the values of rank
//! `k * n / bins`, found by counting digits of the values from the highest on: 16 bits, then 8, then 8. Counts are whole
//! numbers, so their sums over the ranks do not depend on how the rows are divided.

mod count;
mod distinct;
mod key;
#[cfg(test)]
mod tests;

use crate::Together;
use crate::xgboost::RowBlocks;
use distinct::Distinct;
pub(crate) use key::{key, value};
use std::ops::ControlFlow;

/// The rows of one rank.
pub struct RankRows<'a> {
    /// The numbers; NaN is a missing one.
    pub blocks: &'a mut dyn RowBlocks,
    /// For each column, whether it holds categories, which are whole numbers from 0 on.
    pub categorical: &'a [bool],
}

/// Rows that are looked at before others: so few that they stay in the cache while one column after the other is.
const LOOKED_AT: usize = 2048;

impl RankRows<'_> {
    /// Hands out all rows, some at a time, as long as `each` wants more.
    fn walk(&mut self, mut each: impl FnMut(RowPart<'_>) -> ControlFlow<()>) {
        let columns = self.categorical.len();
        self.blocks.restart();
        while let Some(block) = self.blocks.next() {
            for values in block.chunks(LOOKED_AT * columns.max(1)) {
                if each(RowPart { values, columns }).is_break() {
                    return;
                }
            }
        }
    }
}

/// Some rows.
#[derive(Clone, Copy)]
struct RowPart<'a> {
    values: &'a [f32],
    columns: usize,
}

impl<'a> RowPart<'a> {
    /// The keys of a column's values that are there.
    fn keys(self, column: usize) -> impl Iterator<Item = u32> + use<'a> {
        let values = self.values.iter().skip(column).step_by(self.columns);
        values
            .filter(|value| !value.is_nan())
            .map(|&value| key(value))
    }
}

/// The values at which each column is cut, in order, at most `bins` of a column unless it holds categories; the first is
/// the smallest value there is. A column without values has none.
///
/// # Errors
/// When a peer is lost.
pub fn cuts<T: Together>(
    rows: &mut RankRows<'_>,
    bins: usize,
    together: &T,
) -> Result<Vec<Vec<f32>>, T::Error> {
    let columns = rows.categorical.len();
    let distinct = distinct::of_all(rows, bins, together)?;
    let many: Vec<usize> = (0..columns)
        .filter(|&column| matches!(distinct[column], Distinct::TooMany))
        .collect();
    let mut counted = count::order_statistics(rows, &many, bins, together)?.into_iter();
    let cuts = distinct.into_iter().enumerate().map(|(column, distinct)| {
        let keys = match distinct {
            Distinct::Few(keys) => keys,
            Distinct::TooMany => counted.next().unwrap_or_default(),
        };
        match (rows.categorical[column], keys.last()) {
            (true, Some(&last)) => categories(value(last)),
            _ => keys.into_iter().map(value).collect(),
        }
    });
    Ok(cuts.collect())
}

/// All categories up to the largest one, also those that no row has.
fn categories(largest: f32) -> Vec<f32> {
    (0..=largest as u32)
        .map(|category| category as f32)
        .collect()
}

/// The cuts as rows: the k-th row has the k-th cut of each column, and NaN where there is none. A matrix of these rows
/// is cut exactly there.
pub fn as_rows(cuts: &[Vec<f32>]) -> Vec<f32> {
    let rows = cuts.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let mut values = vec![f32::NAN; rows * cuts.len()];
    for (column, cuts_of_column) in cuts.iter().enumerate() {
        for (row, &cut) in cuts_of_column.iter().enumerate() {
            values[row * cuts.len() + column] = cut;
        }
    }
    values
}
