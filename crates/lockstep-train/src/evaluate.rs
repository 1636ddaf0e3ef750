//! Loss and accuracy on a whole data set, the work shared by the gang, the result the same for any
//! number of workers.
//!
//! The set is cut into blocks of a fixed size. Each block is one worker's; the blocks' sums are collected
//! and added in the order of the set.

use crate::TrainError;
use crate::event::Metrics;
use lockstep_data::{Dataset, Normaliser};
use lockstep_gang::Collective;
use lockstep_nn::{Batch, Buffer, LossSum, Model};

/// Samples in a block.
pub(crate) const BLOCK: usize = 256;

/// Buffers for one block.
pub(crate) struct Evaluator {
    inputs: Buffer,
    labels: Vec<u32>,
}

impl Evaluator {
    pub(crate) fn new(sample_len: usize) -> Self {
        Self {
            inputs: Buffer::zeros(BLOCK * sample_len),
            labels: vec![0; BLOCK],
        }
    }

    /// The metrics over the given samples of `set`, the same on every rank.
    pub(crate) fn run(
        &mut self,
        model: &mut Model,
        state: &[f32],
        (set, indices): (&Dataset, &[u32]),
        normaliser: &Normaliser,
        collective: &mut dyn Collective,
    ) -> Result<Metrics, TrainError> {
        let (rank, workers) = (collective.rank(), collective.plan().workers());
        let blocks = indices.len().div_ceil(BLOCK);
        let mut mine = vec![0.0; 2 * blocks];
        for (number, block) in indices.chunks(BLOCK).enumerate() {
            if number % workers == rank {
                let inputs = &mut self.inputs[..block.len() * set.sample_len()];
                let labels = &mut self.labels[..block.len()];
                set.gather(block, normaliser, inputs, labels);
                let sum = model.evaluate(state, Batch { inputs, labels });
                mine[2 * number] = sum.loss;
                mine[2 * number + 1] = sum.correct as f64;
            }
        }
        let mut all = vec![0.0; mine.len() * workers];
        collective.all_gather(&mine, &mut all)?;
        let mut total = LossSum::default();
        for number in 0..blocks {
            let at = number % workers * mine.len() + 2 * number;
            total.loss += all[at];
            total.correct += all[at + 1] as u64;
        }
        Ok(Metrics {
            loss: total.loss / indices.len() as f64,
            accuracy: total.correct as f64 / indices.len() as f64,
        })
    }
}
