//! Scores of classes as probabilities.

use super::{exp, ln};

/// What the probabilities of one row of scores have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Softmax {
    /// The class with the largest score; of equal ones the first.
    pub best: usize,
    /// Taken off every logit, so that no exponential overflows.
    largest: f64,
    sum: f64,
}

impl Softmax {
    /// Of the scores of one row, one a class.
    #[inline]
    pub fn of(row: &[f32]) -> Self {
        let first = (0, f32::NEG_INFINITY);
        let (best, largest) =
            row.iter().enumerate().fold(
                first,
                |best, (j, &x)| {
                    if x > best.1 { (j, x) } else { best }
                },
            );
        let largest = f64::from(largest);
        let sum = row.iter().map(|&x| exp(f64::from(x) - largest)).sum();
        Self { best, largest, sum }
    }

    /// The probability of a class with this score.
    #[inline]
    pub fn probability(&self, logit: f32) -> f64 {
        exp(f64::from(logit) - self.largest) / self.sum
    }

    /// The cross-entropy of the row that this is of, if the class with this score is its own.
    #[inline]
    pub fn loss(&self, logit: f32) -> f64 {
        ln(self.sum) - (f64::from(logit) - self.largest)
    }
}
