//! Loss and accuracy on a whole data set, the work shared by the gang, the result the same for any
//! number of workers.
//!
//! The set is cut into blocks of a fixed size. Each block is one worker's; the blocks' sums are collected
//! and added in the order of the set. How many rows of a block are computed at a time is a matter of
//! memory alone: within a block rows are added one by one.

use crate::{Prediction, TrainError};
use lockstep_data::{Dataset, Normaliser};
use lockstep_events::Metrics;
use lockstep_gang::Collective;
use lockstep_nn::{Buffer, LossSum, Model, Softmax};

/// Samples in a block.
pub(crate) const BLOCK: usize = 256;

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

    /// The metrics over the given samples of `set`, the same on every rank. With `predictions`, what the
    /// model says of each of them too, in their order.
    ///
    /// Samples of classes that the model does not know are left out of the metrics.
    pub(crate) fn run(
        &mut self,
        model: &mut Model,
        state: &[f32],
        (set, indices): (&Dataset, &[u32]),
        normaliser: &Normaliser,
        collective: &mut dyn Collective,
        predictions: Option<&mut Vec<Prediction>>,
    ) -> Result<Metrics, TrainError> {
        let (rank, workers) = (collective.rank(), collective.plan().workers());
        let blocks = indices.len().div_ceil(BLOCK);
        let mut mine = vec![0.0; NUMBERS * blocks];
        let mut said = Vec::new();
        let wanted = predictions.is_some();
        for (number, block) in indices.chunks(BLOCK).enumerate() {
            if number % workers == rank {
                let samples = (set, block);
                let mut note = |scores: &[f32], softmax: &Softmax, label| {
                    if wanted {
                        said.extend(Prediction::of(scores, softmax, label).pack());
                    }
                };
                let sum = self.block(model, state, samples, normaliser, &mut note);
                mine[NUMBERS * number..][..NUMBERS].copy_from_slice(&[
                    sum.loss,
                    sum.correct as f64,
                    sum.rows as f64,
                ]);
            }
        }
        let mut all = vec![0.0; mine.len() * workers];
        collective.all_gather(&mine, &mut all)?;
        let mut total = LossSum::default();
        for number in 0..blocks {
            let at = number % workers * mine.len() + NUMBERS * number;
            total.loss += all[at];
            total.correct += all[at + 1] as u64;
            total.rows += all[at + 2] as u64;
        }
        if let Some(predictions) = predictions {
            gather(said, indices.len(), collective, predictions)?;
        }
        Ok(mean(&total))
    }

    /// The sum over at most [`BLOCK`] samples, added one by one. Calls `each` for every sample with its
    /// scores, what they have in common and its label.
    pub(crate) fn block(
        &mut self,
        model: &mut Model,
        state: &[f32],
        (set, indices): (&Dataset, &[u32]),
        normaliser: &Normaliser,
        each: &mut dyn FnMut(&[f32], &Softmax, u32),
    ) -> LossSum {
        let classes = model.classes();
        let mut sum = LossSum::default();
        for samples in indices.chunks(self.rows) {
            let inputs = &mut self.inputs[..samples.len() * set.sample_len()];
            let own = &mut self.labels[..samples.len()];
            set.gather(samples, normaliser, inputs, own);
            let scores = model.scores(state, inputs);
            for (scores, &label) in scores.chunks_exact(classes).zip(&*own) {
                let softmax = Softmax::of(scores);
                if (label as usize) < classes {
                    sum += softmax.loss(scores, label);
                }
                each(scores, &softmax, label);
            }
        }
        sum
    }
}

/// What a classifier is measured by; what training minimises comes first.
pub const METRICS: [&str; 2] = ["loss", "accuracy"];

/// What a classifier comes to on average over the samples of a sum.
pub(crate) fn mean(sum: &LossSum) -> Metrics {
    let rows = sum.rows as f64;
    let values = [sum.loss / rows, sum.correct as f64 / rows];
    METRICS.into_iter().zip(values).collect()
}

/// Numbers that a block comes to.
const NUMBERS: usize = 3;

/// Brings what every rank's own blocks say to all, in the order of the samples.
fn gather(
    mut said: Vec<f64>,
    samples: usize,
    collective: &mut dyn Collective,
    predictions: &mut Vec<Prediction>,
) -> Result<(), TrainError> {
    let workers = collective.plan().workers();
    // Every rank hands in as much as the one that has most.
    let share = samples.div_ceil(BLOCK).div_ceil(workers) * BLOCK * 2;
    said.resize(share, 0.0);
    let mut all = vec![0.0; share * workers];
    collective.all_gather(&said, &mut all)?;
    predictions.clear();
    for sample in 0..samples {
        let (block, row) = (sample / BLOCK, sample % BLOCK);
        let at = block % workers * share + 2 * (block / workers * BLOCK + row);
        predictions.push(Prediction::unpack([all[at], all[at + 1]]));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_data::Source;
    use lockstep_fs::CacheDir;
    use lockstep_gang::{AbortSwitch, Plan, Solo};
    use lockstep_nn::{Dims, NamedLayer, zoo};

    #[test]
    fn rows_fill_the_room_but_never_less_than_a_lane_or_more_than_a_block() {
        assert_eq!(rows_at_once(16, 10_000), BLOCK, "a dense network");
        assert_eq!(
            rows_at_once(64, 1 << 20),
            64,
            "a lane's buffers are there anyway"
        );
        assert_eq!(rows_at_once(16, 1 << 20), 32, "what fits");
        assert_eq!(rows_at_once(2, 1 << 30), 2);
        assert_eq!(rows_at_once(1, usize::MAX), 1);
        assert_eq!(rows_at_once(1000, 1), BLOCK);
    }

    /// 300 images of 8 x 8 noise.
    fn noise(folder: &std::path::Path) -> Dataset {
        let (samples, side) = (300u32, 8u32);
        let header = |shape: &[u32]| {
            let mut bytes = vec![0, 0, 8, shape.len() as u8];
            bytes.extend(shape.iter().flat_map(|side| side.to_be_bytes()));
            bytes
        };
        let mut images = header(&[samples, side, side]);
        images.extend((0..samples * side * side).map(|i| (i * 7919 % 251) as u8));
        let mut labels = header(&[samples]);
        labels.extend((0..samples).map(|i| (i * 31 % 7) as u8));
        let paths = ["images", "labels"].map(|name| folder.join(name));
        std::fs::write(&paths[0], images).unwrap();
        std::fs::write(&paths[1], labels).unwrap();
        let [images, labels] = paths;
        let source = Source::Idx {
            images,
            labels: Some(labels),
            class_names: None,
        };
        let cache = CacheDir::at(&folder.join("cache")).unwrap();
        source.ensure(&cache, &mut |_| {}).unwrap();
        Dataset::open(&source, &cache).unwrap()
    }

    #[test]
    fn metrics_and_predictions_do_not_depend_on_the_rows_that_are_computed_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let set = noise(folder.path());
        let indices: Vec<u32> = (0..set.len() as u32).rev().collect();
        let layers: Vec<NamedLayer> = zoo::cifar_cnn(7);
        let input = Dims {
            height: 8,
            width: 8,
            channels: 1,
        };
        let metrics = |rows: usize| {
            let mut model = Model::new(&layers, input, rows).unwrap();
            let state = model.initial_state(1);
            let plan = Plan::new(model.layout().chunks.clone(), 1, 1).unwrap();
            let mut solo = Solo::new(plan, AbortSwitch::default()).unwrap();
            let mut predictions = Vec::new();
            let metrics = Evaluator::new(set.sample_len(), rows)
                .run(
                    &mut model,
                    &state,
                    (&set, &indices),
                    &Normaliser::identity(1),
                    &mut solo,
                    Some(&mut predictions),
                )
                .unwrap();
            (metrics, predictions)
        };
        let whole = metrics(BLOCK);
        assert!(
            whole
                .0
                .get("loss")
                .is_some_and(|loss| loss.is_finite() && loss > 0.0)
        );
        let right = indices.iter().zip(&whole.1);
        let right = right.filter(|(row, said)| set.labels()[**row as usize] == said.class);
        assert_eq!(Some(right.count() as f64 / 300.0), whole.0.get("accuracy"));
        assert_eq!(whole.1.len(), 300);
        for rows in [1, 7, 100] {
            assert_eq!(metrics(rows), whole, "{rows} rows at a time");
        }
    }
}
