//! The metrics on a whole data set, the work shared by the gang, the result the same for any number of
//! workers.
//!
//! The set is cut into blocks of a fixed size. Each block is one worker's; the blocks' sums are collected
//! and added in the order of the set. How many rows of a block are computed at a time is a matter of
//! memory alone: within a block rows are added one by one.

use crate::TrainError;
use crate::device::{Objective, Scorer};
use crate::targets::TargetRows;
use lockstep_base::math::Softmax;
use lockstep_data::{Dataset, Normaliser};
use lockstep_events::Metrics;
use lockstep_gang::Collective;
use lockstep_measure::{BestBy, Measure, Measured, RegressionScores, Residuals};
use lockstep_model::{BLOCK_ROWS, Outputs, Predictions, RowOutput};
use lockstep_nn::{Buffer, Loss, LossSum, LossTargets, Targets, sigmoid};

/// Memory that evaluation may take beyond what a lane's rows take anyway. Dense layers are fastest on
/// whole blocks, which fit; images are many rows to a matrix product already.
const ROOM: usize = 32 << 20;

/// Rows to compute at a time, where training computes `lane` at a time and a row takes so many bytes.
pub(crate) fn rows_at_once(lane: usize, row_bytes: usize) -> usize {
    (ROOM / row_bytes.max(1))
        .clamp(1, BLOCK_ROWS)
        .max(lane.min(BLOCK_ROWS))
}

/// Buffers for the rows that are computed at a time.
pub(crate) struct Evaluator {
    rows: usize,
    outputs: Outputs,
    inputs: Buffer,
    targets: TargetRows,
    /// What the model says of one row, as people want it.
    said: Vec<f32>,
}

impl Evaluator {
    /// For rows of `sample_len` numbers, `rows` of them at a time, and a model with these outputs.
    pub(crate) fn new(sample_len: usize, rows: usize, outputs: Outputs) -> Self {
        let width = outputs.names.len();
        Self {
            rows,
            inputs: Buffer::zeros(rows * sample_len),
            targets: TargetRows::new(outputs.kind, width, rows),
            said: vec![0.0; width],
            outputs,
        }
    }

    /// The metrics over the given samples of `set`, the same on every rank. With `predictions`, what the
    /// model says of each of them too, in their order.
    ///
    /// Samples of classes that the model does not know are left out of the metrics.
    pub(crate) fn run(
        &mut self,
        network: &mut dyn Scorer,
        (set, indices): (&Dataset, &[u32]),
        normaliser: &Normaliser,
        collective: &mut dyn Collective,
        predictions: Option<&mut Predictions>,
    ) -> Result<Metrics, TrainError> {
        let (rank, workers) = (collective.rank(), collective.plan().workers());
        let blocks = indices.len().div_ceil(BLOCK_ROWS);
        let objective = network.objective();
        let numbers = BlockSum::new(objective).pack().len();
        let mut mine = vec![0.0; numbers * blocks];
        let mut own = Predictions::new(self.outputs.kind, objective.outputs);
        for (number, block) in indices.chunks(BLOCK_ROWS).enumerate() {
            if number % workers == rank {
                let mut note = |said: RowOutput<'_>| {
                    if predictions.is_some() {
                        own.push(said);
                    }
                };
                let sum = self.block(network, (set, block), normaliser, &mut note)?;
                mine[numbers * number..][..numbers].copy_from_slice(&sum.pack());
            }
        }
        let mut all = vec![0.0; mine.len() * workers];
        collective.all_gather(&mine, &mut all)?;
        let mut total = BlockSum::new(objective);
        for number in 0..blocks {
            let at = number % workers * mine.len() + numbers * number;
            total.add(&all[at..at + numbers]);
        }
        if let Some(predictions) = predictions {
            gather(own, indices.len(), collective, predictions)?;
        }
        Ok(total.metrics(objective))
    }

    /// The sums over at most [`BLOCK_ROWS`] samples, added one by one, of which it is known what is right. Calls `each`
    /// for every sample with what the model says of it.
    pub(crate) fn block(
        &mut self,
        network: &mut dyn Scorer,
        (set, indices): (&Dataset, &[u32]),
        normaliser: &Normaliser,
        each: &mut dyn FnMut(RowOutput<'_>),
    ) -> Result<BlockSum, TrainError> {
        let objective = network.objective();
        let Objective { loss, outputs } = objective;
        let mut sum = BlockSum::new(objective);
        let scale = &self.outputs.scale;
        for samples in indices.chunks(self.rows) {
            let row_len = normaliser.row_len(set.sample_len());
            let inputs = &mut self.inputs[..samples.len() * row_len];
            set.gather(samples, normaliser, inputs);
            self.targets.gather(set, scale, samples, 0);
            let targets = self.targets.rows(0..samples.len());
            let scores = network.scores(inputs)?.chunks_exact(outputs);
            for ((row, scores), &sample) in scores.enumerate().zip(samples) {
                let target = targets.of_row(row, outputs);
                if let Targets::Classes(&[label]) = target {
                    let softmax = Softmax::of(scores);
                    if (label as usize) < outputs {
                        sum.loss += LossSum::of_class(&softmax, scores, label);
                    }
                    each(RowOutput::Class(scores, &softmax, label));
                    continue;
                }
                for (column, (said, &score)) in self.said.iter_mut().zip(scores).enumerate() {
                    *said = match loss {
                        Loss::BinaryCrossEntropy => sigmoid(score) as f32,
                        _ => scale.back(column, score),
                    };
                }
                if set.is_labelled() {
                    sum.loss += loss.row(scores, target);
                    let actual = &set.numbers()[sample as usize * outputs..][..outputs];
                    let columns = self.said.iter().zip(actual).zip(scale.mean());
                    for (residuals, ((&said, &actual), &mean)) in
                        sum.residuals.iter_mut().zip(columns)
                    {
                        residuals.add(said, actual, mean);
                    }
                }
                each(RowOutput::Numbers(&self.said));
            }
        }
        Ok(sum)
    }
}

/// What some rows come to.
pub(crate) struct BlockSum {
    pub(crate) loss: LossSum,
    /// A column each; none unless numbers are predicted.
    residuals: Vec<Residuals>,
}

impl BlockSum {
    fn new(objective: Objective) -> Self {
        let columns = match objective.loss.targets() {
            LossTargets::Numbers => objective.outputs,
            LossTargets::Classes | LossTargets::Labels => 0,
        };
        Self {
            loss: LossSum::default(),
            residuals: vec![Residuals::default(); columns],
        }
    }

    /// As numbers that a collective carries.
    fn pack(&self) -> Vec<f64> {
        let LossSum {
            loss,
            correct,
            rows,
        } = self.loss;
        let residuals = self.residuals.iter().flat_map(Residuals::pack);
        [loss, correct as f64, rows as f64]
            .into_iter()
            .chain(residuals)
            .collect()
    }

    /// Adds such numbers.
    fn add(&mut self, numbers: &[f64]) {
        self.loss += LossSum {
            loss: numbers[0],
            correct: numbers[1] as u64,
            rows: numbers[2] as u64,
        };
        let (residuals, _) = numbers[3..].as_chunks();
        for (total, numbers) in self.residuals.iter_mut().zip(residuals) {
            total.merge(&Residuals::unpack(*numbers));
        }
    }

    fn metrics(&self, objective: Objective) -> Metrics {
        let mut metrics = mean(objective, &self.loss);
        if !self.residuals.is_empty() {
            let scores = RegressionScores::mean(&self.residuals, self.loss.rows);
            metrics.set("r2", scores.r2);
            metrics.set("mae", scores.mae);
            metrics.set("mse", scores.mse);
        }
        metrics
    }
}

/// What a model that minimises this is measured by; what is minimised comes first.
pub(crate) fn metrics(loss: Loss) -> &'static [&'static str] {
    match loss.targets() {
        LossTargets::Classes | LossTargets::Labels => &["loss", "accuracy"],
        LossTargets::Numbers => &["loss", "r2", "mae", "mse"],
    }
}

/// Whether what epochs are chosen by follows from all that a model that minimises this says of a set, and not from sums
/// over its samples. A measure of this kind is computed on validation data alone, and only where epochs are chosen by it.
pub(crate) fn is_of_whole_set(best_by: &BestBy, loss: Loss) -> bool {
    !metrics(loss).contains(&best_by.word())
}

/// What an epoch of a model with so many outputs that minimises this can be chosen by.
pub(crate) fn measures(loss: Loss, outputs: usize) -> &'static [Measure] {
    Measure::all_of(match loss.targets() {
        LossTargets::Classes => Measured::Classes(outputs),
        LossTargets::Labels => Measured::Labels,
        LossTargets::Numbers => Measured::Numbers,
    })
}

/// What a model comes to on average over the samples of a sum.
pub(crate) fn mean(objective: Objective, sum: &LossSum) -> Metrics {
    let rows = sum.rows as f64;
    let mut metrics = Metrics::from([("loss", sum.loss / rows)]);
    match objective.loss {
        Loss::CrossEntropy | Loss::Focal { .. } => {
            metrics.set("accuracy", sum.correct as f64 / rows);
        }
        Loss::BinaryCrossEntropy => {
            let labels = rows * objective.outputs as f64;
            metrics.set("accuracy", sum.correct as f64 / labels);
        }
        // Over the training samples, what is to be predicted has the deviation 1.
        Loss::SquaredError => metrics.set("r2", 1.0 - sum.loss / rows),
        Loss::AbsoluteError | Loss::Huber { .. } | Loss::Quantile { .. } => {}
    }
    metrics
}

/// Brings what every rank's own blocks say to all, in the order of the samples.
fn gather(
    own: Predictions,
    samples: usize,
    collective: &mut dyn Collective,
    predictions: &mut Predictions,
) -> Result<(), TrainError> {
    let workers = collective.plan().workers();
    let width = own.width();
    // Every rank hands in as much as the one that has most.
    let share = samples.div_ceil(BLOCK_ROWS).div_ceil(workers) * BLOCK_ROWS * width;
    let mut said = own.pack();
    said.resize(share, 0.0);
    let mut all = vec![0.0; share * workers];
    collective.all_gather(&said, &mut all)?;
    *predictions = own.empty();
    for sample in 0..samples {
        let (block, row) = (sample / BLOCK_ROWS, sample % BLOCK_ROWS);
        let at = block % workers * share + width * (block / workers * BLOCK_ROWS + row);
        predictions.unpack(&all[at..at + width]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostScorer;
    use lockstep_base::fs::CacheDir;
    use lockstep_data::{Source, TargetKind, TargetScale};
    use lockstep_gang::{AbortSwitch, Plan, Solo};
    use lockstep_nn::{Dims, Model, NamedLayer, zoo};

    #[test]
    fn rows_fill_the_room_but_never_less_than_a_lane_or_more_than_a_block() {
        assert_eq!(rows_at_once(16, 10_000), BLOCK_ROWS, "a dense network");
        assert_eq!(
            rows_at_once(64, 1 << 20),
            64,
            "a lane's buffers are there anyway"
        );
        assert_eq!(rows_at_once(16, 1 << 20), 32, "what fits");
        assert_eq!(rows_at_once(2, 1 << 30), 2);
        assert_eq!(rows_at_once(1, usize::MAX), 1);
        assert_eq!(rows_at_once(1000, 1), BLOCK_ROWS);
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
            let mut predictions = Predictions::new(TargetKind::Classes, model.outputs());
            let outputs = Outputs::of(&set, &TargetScale::identity(7), 7);
            let metrics = Evaluator::new(set.sample_len(), rows, outputs)
                .run(
                    &mut HostScorer {
                        model: &mut model,
                        values: &state,
                    },
                    (&set, &indices),
                    &Normaliser::identity(1),
                    &mut solo,
                    Some(&mut predictions),
                )
                .unwrap();
            let Predictions::Classes(predictions) = predictions else {
                panic!("{predictions:?}")
            };
            (metrics, predictions)
        };
        let whole = metrics(BLOCK_ROWS);
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
