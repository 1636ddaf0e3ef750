//! What a model says of some samples in a row.

use crate::Predictions;

/// Samples whose losses are added up before others are. Blocks begin at multiples of this.
pub const BLOCK_ROWS: usize = 256;

/// What a model says of some samples in a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// The first of them.
    pub first: usize,
    /// What it says of each.
    pub predictions: Predictions,
    /// The sums of losses over each [`BLOCK_ROWS`] of them.
    pub losses: Vec<f64>,
    /// The probabilities of all classes, sample by sample, if they were asked for.
    pub probabilities: Vec<f32>,
}

impl Block {
    /// What it says of one of its samples, without losses.
    ///
    /// # Panics
    /// When the sample is none of these.
    pub fn of_row(&self, row: usize) -> Block {
        let at = row - self.first;
        let of_each = self.probabilities.len() / self.predictions.len();
        Block {
            first: row,
            predictions: match &self.predictions {
                Predictions::Classes(said) => Predictions::Classes(vec![said[at]]),
                Predictions::Numbers { width, values } => Predictions::Numbers {
                    width: *width,
                    values: values[at * width..][..*width].to_vec(),
                },
            },
            losses: Vec::new(),
            probabilities: self.probabilities[at * of_each..][..of_each].to_vec(),
        }
    }
}
