//! The batches of an epoch, made ready one step ahead.

use crate::lanes::LaneProgram;
use crate::sets::Sets;
use lockstep_data::EpochOrder;
use lockstep_nn::{Batch, Buffer};

/// This rank's rows of the next batch.
pub(crate) struct Batches {
    order: EpochOrder,
    seed: u64,
    /// The run's step that the epoch begins with.
    first_step: u64,
    /// Samples of a full batch.
    batch: usize,
    sample_len: usize,
    inputs: Buffer,
    labels: Vec<u32>,
    samples: Vec<u32>,
    /// Where each of the program's lanes lies in the buffers, in rows.
    lanes: Vec<std::ops::Range<usize>>,
}

impl Batches {
    pub(crate) fn new(sets: &Sets, seed: u64, batch: usize) -> Self {
        let batch = batch.min(sets.train_indices.len());
        let sample_len = sets.train.sample_len();
        Self {
            order: EpochOrder::of_subset(seed, 1, sets.train_indices.clone()),
            seed,
            first_step: 0,
            batch,
            sample_len,
            inputs: Buffer::zeros(batch * sample_len),
            labels: vec![0; batch],
            samples: vec![0; batch],
            lanes: Vec::with_capacity(batch),
        }
    }

    /// Draws the order of an epoch, counted from 1.
    pub(crate) fn begin(&mut self, epoch: u32) {
        self.order.fill(self.seed, epoch);
        let steps = self.order.indices().len().div_ceil(self.batch) as u64;
        self.first_step = u64::from(epoch - 1) * steps;
    }

    /// Makes the rows of all of the program's lanes ready, for step `step` of the epoch.
    pub(crate) fn prepare(&mut self, sets: &Sets, program: &LaneProgram, step: u64) {
        let first = step as usize * self.batch;
        let batch = &self.order.indices()[first..first + program.batch];
        self.lanes.clear();
        let mut row = 0;
        for work in &program.work {
            let rows = row..row + work.rows.len();
            let samples = &batch[work.rows.clone()];
            self.samples[rows.clone()].copy_from_slice(samples);
            let inputs = &mut self.inputs[rows.start * self.sample_len..rows.end * self.sample_len];
            let labels = &mut self.labels[rows.clone()];
            match &sets.augmenter {
                None => sets.train.gather(samples, &sets.normaliser, inputs, labels),
                Some(augmenter) => sets.train.gather_augmented(
                    samples,
                    &sets.normaliser,
                    (augmenter, self.first_step + step),
                    inputs,
                    labels,
                ),
            }
            row = rows.end;
            self.lanes.push(rows);
        }
    }

    /// The rows of the program's `i`-th lane, and which samples they are.
    pub(crate) fn lane(&self, i: usize) -> (Batch<'_>, &[u32]) {
        let rows = self.lanes[i].clone();
        let inputs = &self.inputs[rows.start * self.sample_len..rows.end * self.sample_len];
        (
            Batch {
                inputs,
                labels: &self.labels[rows.clone()],
            },
            &self.samples[rows],
        )
    }
}
