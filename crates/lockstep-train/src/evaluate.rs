//! Loss and accuracy on a whole data set, the work shared by the gang, the result the same for any
//! number of workers.
//!
//! The set is cut into blocks of a fixed size. Each block is one worker's; the blocks' sums are collected
//! and added in the order of the set. How many rows of a block are computed at a time is a matter of
//! memory alone: within a block rows are added one by one.

use crate::TrainError;
use crate::event::Metrics;
use lockstep_data::{Dataset, Normaliser};
use lockstep_gang::Collective;
use lockstep_nn::{Batch, Buffer, LossSum, Model};

/// Samples in a block.
const BLOCK: usize = 256;

/// Memory that evaluation may take beyond what a lane's rows take anyway. Dense layers are fastest on
/// whole blocks, which fit; images are many rows to a matrix product already.
const ROOM: usize = 32 << 20;

/// Rows to compute at a time, where training computes `lane` at a time and a row takes so many bytes.
pub(crate) fn rows_at_once(lane: usize, row_bytes: usize) -> usize {
    (ROOM / row_bytes.max(1))
        .clamp(1, BLOCK)
        .max(lane.min(BLOCK))
}

/// Buffers for the rows that are computed at a time.
pub(crate) struct Evaluator {
    rows: usize,
    inputs: Buffer,
    labels: Vec<u32>,
}

impl Evaluator {
    /// For rows of `sample_len` numbers, `rows` of them at a time.
    pub(crate) fn new(sample_len: usize, rows: usize) -> Self {
        Self {
            rows,
            inputs: Buffer::zeros(rows * sample_len),
            labels: vec![0; rows],
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
                let mut sum = LossSum::default();
                for samples in block.chunks(self.rows) {
                    let inputs = &mut self.inputs[..samples.len() * set.sample_len()];
                    let labels = &mut self.labels[..samples.len()];
                    set.gather(samples, normaliser, inputs, labels);
                    model.evaluate(state, Batch { inputs, labels }, &mut sum);
                }
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
