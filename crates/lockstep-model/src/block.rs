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
