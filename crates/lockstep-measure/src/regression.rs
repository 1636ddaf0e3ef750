//! How near predicted numbers are: the mean squared and the mean absolute error, and R².
//!
//! Sums are in `f64`, over blocks of rows that are added in their order: the same to the bit whoever computes
//! which block. The numbers are those of scikit-learn: means over the columns, all alike, and R² of a column
//! that is the same everywhere is 1 if it was predicted exactly and else 0.

use crate::table::{fitted, padded, printable};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the predictions of one column come to, in sums.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Residuals {
    /// Squared errors.
    pub squared: f64,
    /// Absolute errors.
    pub absolute: f64,
    /// What was to be predicted, less the shift.
    pub actual: f64,
    /// The squares of that.
    pub actual_squared: f64,
}

impl Residuals {
    /// How many numbers it is.
    pub const NUMBERS: usize = 4;

    /// Adds a row. The `shift` is the same for all rows: near the mean of what is to be predicted, so that the
    /// sums do not cancel.
    pub fn add(&mut self, predicted: f32, actual: f32, shift: f32) {
        let error = f64::from(predicted) - f64::from(actual);
        let shifted = f64::from(actual) - f64::from(shift);
        self.squared += error * error;
        self.absolute += error.abs();
        self.actual += shifted;
        self.actual_squared += shifted * shifted;
    }

    /// Adds what other rows came to.
    pub fn merge(&mut self, other: &Self) {
        self.squared += other.squared;
        self.absolute += other.absolute;
        self.actual += other.actual;
        self.actual_squared += other.actual_squared;
    }

    /// As numbers that a collective carries.
    pub fn pack(&self) -> [f64; Self::NUMBERS] {
        [
            self.squared,
            self.absolute,
            self.actual,
            self.actual_squared,
        ]
    }

    /// From such numbers.
    pub fn unpack([squared, absolute, actual, actual_squared]: [f64; Self::NUMBERS]) -> Self {
        Self {
            squared,
            absolute,
            actual,
            actual_squared,
        }
    }

    /// The scores that so many rows come to.
    pub fn scores(&self, rows: u64) -> RegressionScores {
        let rows = rows as f64;
        let spread = self.actual_squared - self.actual * self.actual / rows;
        RegressionScores {
            mse: self.squared / rows,
            mae: self.absolute / rows,
            r2: match spread > 0.0 {
                true => 1.0 - self.squared / spread,
                false if self.squared == 0.0 => 1.0,
                false => 0.0,
            },
        }
    }
}

/// How near predicted numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct RegressionScores {
    /// The mean squared error.
    pub mse: f64,
    /// The mean absolute error.
    pub mae: f64,
    /// The coefficient of determination: 1 is perfect, 0 as good as saying the mean of the set of every sample.
    pub r2: f64,
}

impl RegressionScores {
    /// The mean over the columns, all alike.
    pub fn mean(columns: &[Residuals], rows: u64) -> Self {
        let mut mean = Self::default();
        for column in columns {
            let scores = column.scores(rows);
            mean.mse += scores.mse;
            mean.mae += scores.mae;
            mean.r2 += scores.r2;
        }
        let count = columns.len() as f64;
        Self {
            mse: mean.mse / count,
            mae: mean.mae / count,
            r2: mean.r2 / count,
        }
    }
}

/// The numbers that say how near a model's numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RegressionSummary {
    /// Samples: what all numbers here are over.
    pub samples: u64,
    /// The mean loss: the mean squared error in units of the training samples' deviation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// The means over the columns, all alike.
    #[serde(flatten)]
    pub scores: RegressionScores,
}

/// The scores of one column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnScores {
    /// The column.
    pub column: String,
    /// How near it was predicted.
    #[serde(flatten)]
    pub scores: RegressionScores,
}

/// A prediction that is far from what is right.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Miss {
    /// Which sample of the set, counted from 0.
    pub row: u64,
    /// Where the sample came from, if the set knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Which column.
    pub column: String,
    /// What is right.
    pub actual: f32,
    /// What was predicted.
    pub predicted: f32,
}

/// Everything that is known about how near a model's numbers are on a set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Regression {
    /// What it was measured on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// The numbers that say how near they are.
    #[serde(flatten)]
    pub summary: RegressionSummary,
    /// The metrics of the job\'s own, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
    /// Each column by itself.
    pub columns: Vec<ColumnScores>,
    /// The predictions that are farthest off, in deviations of their column, farthest first.
    pub misses: Vec<Miss>,
}

impl Regression {
    /// The scores of every column and their mean, as aligned lines of text.
    pub fn table(&self) -> Vec<String> {
        let names = self.columns.iter().map(|column| printable(&column.column));
        let names: Vec<String> = names.map(|name| fitted(&name, 40)).collect();
        let width = names.iter().map(|name| name.chars().count()).max();
        let width = width.unwrap_or(0).max(MEAN.len());
        let row = |name: &str, scores: &RegressionScores| {
            let RegressionScores { mse, mae, r2 } = scores;
            format!(
                "{}  {mse:>12.6}  {mae:>12.6}  {r2:>8.4}",
                padded(name, width)
            )
        };
        let mut lines = vec![format!(
            "{}  {:>12}  {:>12}  {:>8}",
            padded("column", width),
            "MSE",
            "MAE",
            "R²"
        )];
        let columns = names.iter().zip(&self.columns);
        lines.extend(columns.map(|(name, column)| row(name, &column.scores)));
        if self.columns.len() > 1 {
            lines.push(String::new());
            lines.push(row(MEAN, &self.summary.scores));
        }
        lines
    }
}

const MEAN: &str = "mean";

/// Takes in predicted numbers, row after row.
#[derive(Debug, Clone)]
pub struct RegressionTally {
    columns: Vec<String>,
    /// The mean and the deviation of each column among the training samples.
    shift: Vec<f32>,
    unit: Vec<f32>,
    /// Rows of a block.
    block: u64,
    rows: u64,
    total: Vec<Residuals>,
    partial: Vec<Residuals>,
    farthest: Vec<(f64, Miss)>,
}

impl RegressionTally {
    /// For these columns, each with its mean and its deviation among the training samples. Sums are over `block`
    /// rows first.
    pub fn new(columns: &[String], shift: &[f32], unit: &[f32], block: usize) -> Self {
        Self {
            columns: columns.to_vec(),
            shift: shift.to_vec(),
            unit: unit.to_vec(),
            block: block as u64,
            rows: 0,
            total: vec![Residuals::default(); columns.len()],
            partial: vec![Residuals::default(); columns.len()],
            farthest: Vec::new(),
        }
    }

    /// Takes in the next row: what was predicted and what is right in each column.
    pub fn add(&mut self, predicted: &[f32], actual: &[f32]) {
        for (i, (&predicted, &actual)) in predicted.iter().zip(actual).enumerate() {
            self.partial[i].add(predicted, actual, self.shift[i]);
            let off = (f64::from(predicted) - f64::from(actual)).abs() / f64::from(self.unit[i]);
            let miss = Miss {
                row: self.rows,
                path: None,
                column: String::new(),
                actual,
                predicted,
            };
            self.keep(off, i, miss);
        }
        self.rows += 1;
        if self.rows.is_multiple_of(self.block) {
            self.fold();
        }
    }

    /// Keeps a miss if it may be among the farthest. Of equal ones the first stays.
    fn keep(&mut self, off: f64, column: usize, miss: Miss) {
        let off = if off.is_nan() { f64::INFINITY } else { off };
        if off == 0.0 {
            return;
        }
        let full = self.farthest.len() >= MISSES;
        if full && self.farthest[MISSES - 1].0 >= off {
            return;
        }
        let at = self.farthest.partition_point(|(other, _)| *other >= off);
        let column = self.columns[column].clone();
        self.farthest.insert(at, (off, Miss { column, ..miss }));
        self.farthest.truncate(MISSES);
    }

    fn fold(&mut self) {
        for (total, partial) in self.total.iter_mut().zip(&mut self.partial) {
            total.merge(&std::mem::take(partial));
        }
    }

    /// What it all comes to. `path` says where a sample is from.
    pub fn finish(mut self, path: impl Fn(u64) -> Option<String>) -> Regression {
        self.fold();
        let columns = self.columns.into_iter().zip(&self.total);
        let columns = columns.map(|(column, residuals)| ColumnScores {
            column,
            scores: residuals.scores(self.rows),
        });
        let misses = self.farthest.into_iter().map(|(_, miss)| Miss {
            path: path(miss.row),
            ..miss
        });
        Regression {
            set: None,
            summary: RegressionSummary {
                samples: self.rows,
                loss: None,
                scores: RegressionScores::mean(&self.total, self.rows),
            },
            metrics: BTreeMap::new(),
            columns: columns.collect(),
            misses: misses.collect(),
        }
    }
}

/// How many of the farthest misses are listed.
const MISSES: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(predicted: &[[f32; 2]], actual: &[[f32; 2]], block: usize) -> Regression {
        let columns = ["a", "b"].map(str::to_owned);
        let mut tally = RegressionTally::new(&columns, &[2.0, 100.0], &[1.0, 10.0], block);
        for (predicted, actual) in predicted.iter().zip(actual) {
            tally.add(predicted, actual);
        }
        tally.finish(|row| Some(format!("{row}.csv")))
    }

    /// The example of scikit-learn's `r2_score`, and a second column.
    #[test]
    fn the_numbers_are_those_of_scikit_learn() {
        let predicted = [[2.5, 1.0], [0.0, 1.0], [2.0, 1.0], [8.0, 1.0]];
        let actual = [[3.0, 1.0], [-0.5, 1.0], [2.0, 1.0], [7.0, 1.0]];
        let found = tally(&predicted, &actual, 3);
        let scores = found.columns[0].scores;
        assert!(
            (scores.r2 - 0.948_608_137_044_967_9).abs() < 1e-12,
            "{scores:?}"
        );
        assert!((scores.mse - 0.375).abs() < 1e-12 && (scores.mae - 0.5).abs() < 1e-12);
        let same = found.columns[1].scores;
        assert_eq!(
            (same.mse, same.r2),
            (0.0, 1.0),
            "exactly the same everywhere"
        );
        let mean = found.summary.scores;
        assert!((mean.r2 - (scores.r2 + 1.0) / 2.0).abs() < 1e-12);
        assert!((mean.mse - scores.mse / 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_constant_that_is_missed_explains_nothing() {
        let found = tally(&[[0.0, 1.0], [0.0, 2.0]], &[[0.0, 5.0], [0.0, 5.0]], 1);
        assert_eq!(found.columns[1].scores.r2, 0.0);
    }

    #[test]
    fn the_farthest_misses_come_first_in_deviations_of_their_column() {
        let found = tally(&[[1.0, 50.0], [0.0, 0.0]], &[[0.0, 0.0], [9.0, 9.0]], 256);
        let rows: Vec<_> = found
            .misses
            .iter()
            .map(|miss| (miss.row, &*miss.column))
            .collect();
        assert_eq!(rows, [(1, "a"), (0, "b"), (0, "a"), (1, "b")]);
        assert_eq!(found.misses[0].path.as_deref(), Some("1.csv"));
    }

    #[test]
    fn a_large_mean_does_not_cancel_the_spread() {
        let columns = ["a".to_owned()];
        let mut tally = RegressionTally::new(&columns, &[1.0e7], &[1.0], 256);
        for row in 0..1000 {
            let actual = 1.0e7 + (row % 2) as f32;
            tally.add(&[1.0e7], &[actual]);
        }
        let scores = tally.finish(|_| None).columns[0].scores;
        assert!((scores.r2 - -1.0).abs() < 1e-9, "{scores:?}");
        assert_eq!(scores.mse, 0.5);
    }
}
