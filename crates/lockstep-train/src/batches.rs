//! The batches of an epoch, made ready one step ahead.

use crate::lanes::LaneProgram;
use crate::loss_shape::{LossShape, WeighedSample};
use crate::mixing::{Mixer, Mixture};
use crate::sets::Sets;
use crate::targets::TargetRows;
use lockstep_data::EpochOrder;
use lockstep_nn::threads::{pieces, pieces_mut};
use lockstep_nn::{Batch, Buffer, Targets, Threads};
use lockstep_resolve::TrainingSettings;
use std::ops::Range;

/// Numbers of inputs that are worth a thread: gathering fewer takes no longer than waiting for one.
const WORTH_A_THREAD: usize = if cfg!(test) { 1 << 10 } else { 1 << 16 };

/// This rank's rows of the next batch, or all rows.
pub(crate) struct Batches {
    /// What rows are gathered on.
    threads: Threads,
    order: EpochOrder,
    seed: u64,
    /// The run's step that the epoch begins with.
    first_step: u64,
    /// Samples of a full batch.
    batch: usize,
    /// Numbers of a row; 0 where somebody else makes the inputs.
    sample_len: usize,
    /// Of the next batch and, where all rows are wanted, of the one before, in turns.
    inputs: [Buffer; 2],
    /// Whether all rows are made ready, not only those of this rank's lanes.
    whole: bool,
    /// Which of the inputs are the next batch's.
    next: usize,
    /// The run's step that it is for.
    step: u64,
    targets: TargetRows,
    /// How the targets count, if not as they are.
    shape: Option<LossShape>,
    /// Mixes images, and how every row was, and with which class and to which share.
    mixer: Option<Mixer>,
    mixtures: Vec<Mixture>,
    others: Vec<(u32, f32)>,
    /// What every row counts; empty where all count alike.
    weights: Vec<f32>,
    samples: Vec<u32>,
    /// Where each of the program's lanes lies in the buffers, in rows.
    lanes: Vec<Range<usize>>,
}

/// Rows that were made ready.
pub(crate) struct PreparedRows<'a> {
    pub(crate) inputs: &'a [f32],
    pub(crate) samples: &'a [u32],
    /// What each is to be taken for.
    pub(crate) targets: Targets<'a>,
    /// What each counts; empty where all count alike.
    pub(crate) weights: &'a [f32],
    /// What each was mixed with, and to which share; empty where none was.
    pub(crate) others: &'a [(u32, f32)],
    /// How; empty where none was.
    pub(crate) mixtures: &'a [Mixture],
    /// What all count beside that.
    pub(crate) factor: f64,
    /// The step of the run that they are for.
    pub(crate) step: u64,
}

impl Batches {
    pub(crate) fn new(sets: &Sets, settings: &TrainingSettings, whole: bool) -> Self {
        let seed = settings.seed;
        let batch = settings.learner.batch.min(sets.train_indices.len());
        let sample_len = sets.input_len();
        Self {
            threads: Threads::default(),
            order: match settings.balance {
                true => {
                    let class = |sample| sets.train.labels()[sample as usize];
                    EpochOrder::balanced(seed, 1, &sets.train_indices, class)
                }
                false => EpochOrder::of_subset(seed, 1, sets.train_indices.clone()),
            },
            seed,
            first_step: 0,
            batch,
            sample_len,
            inputs: [batch, if whole { batch } else { 0 }]
                .map(|rows| Buffer::zeros(rows * sample_len)),
            whole,
            next: 0,
            step: 0,
            targets: TargetRows::new(sets.train.target_kind(), sets.train.outputs(), batch),
            shape: LossShape::new(settings, sets),
            mixer: Mixer::new(settings, sets),
            mixtures: vec![Mixture::default(); batch],
            others: vec![(0, 0.0); batch],
            weights: vec![
                1.0;
                if sets.train.weights().is_some() {
                    batch
                } else {
                    0
                }
            ],
            samples: vec![0; batch],
            lanes: Vec::with_capacity(batch),
        }
    }

    /// The same, gathered on these threads.
    pub(crate) fn on(self, threads: Threads) -> Self {
        Self { threads, ..self }
    }

    /// The same without inputs, which somebody else makes.
    pub(crate) fn without_inputs(self) -> Self {
        Self {
            sample_len: 0,
            inputs: [0, 0].map(Buffer::zeros),
            ..self
        }
    }

    /// Draws the order of an epoch, counted from 1.
    pub(crate) fn begin(&mut self, epoch: u32) {
        self.order.fill(self.seed, epoch);
        let steps = self.order.indices().len().div_ceil(self.batch) as u64;
        self.first_step = u64::from(epoch - 1) * steps;
    }

    /// Makes the rows of all of the program's lanes ready, or all rows, for step `step` of the epoch.
    pub(crate) fn prepare(&mut self, sets: &Sets, program: &LaneProgram, step: u64) {
        self.lanes.clear();
        self.step = self.first_step + step;
        self.weigh(sets, program.batch, step);
        if self.whole {
            self.next = 1 - self.next;
            self.gather(sets, step, 0..program.batch, 0);
            self.lanes
                .extend(program.work.iter().map(|work| work.rows.clone()));
            return;
        }
        let mut row = 0;
        for work in &program.work {
            self.gather(sets, step, work.rows.clone(), row);
            self.lanes.push(row..row + work.rows.len());
            row += work.rows.len();
        }
    }

    /// Adds up what the rows of a step's batch count, where they do not count alike.
    fn weigh(&mut self, sets: &Sets, batch: usize, step: u64) {
        let Some(shape) = &mut self.shape else {
            return;
        };
        let first = step as usize * self.batch;
        let samples = &self.order.indices()[first..first + batch];
        let (labels, weights) = (sets.train.labels(), sets.train.weights());
        let class = |sample: u32| labels.get(sample as usize).copied().unwrap_or_default();
        let (mixer, step) = (&self.mixer, self.first_step + step);
        shape.begin(samples.iter().map(|&sample| {
            let mixture = mixer
                .as_ref()
                .map(|mixer| mixer.mixture(step, sample, &sets.train_indices));
            let other = mixture.map(|mixture| (class(mixture.other), mixture.share));
            let (other, share) = other.unwrap_or_default();
            WeighedSample {
                weight: weights.map_or(1.0, |weights| weights[sample as usize]),
                class: class(sample),
                other,
                share,
            }
        }));
    }

    /// What every row counts beside its own weight, for each step of the epoch; nothing where all count alike.
    pub(crate) fn factors(&mut self, sets: &Sets) -> Vec<f64> {
        let samples = self.order.indices().len();
        let steps = match self.shape {
            Some(_) => samples.div_ceil(self.batch),
            None => 0,
        };
        let factor = |step: usize| {
            let batch = self.batch.min(samples - step * self.batch);
            self.weigh(sets, batch, step as u64);
            self.shape.as_ref().map_or(1.0, LossShape::factor)
        };
        (0..steps).map(factor).collect()
    }

    /// The samples of the epoch, in its order.
    pub(crate) fn order(&self) -> &[u32] {
        self.order.indices()
    }

    /// All rows that were made ready last, lane after lane.
    pub(crate) fn prepared(&self) -> PreparedRows<'_> {
        let rows = 0..self.lanes.last().map_or(0, |lane| lane.end);
        PreparedRows {
            inputs: &self.inputs()[..rows.end * self.sample_len],
            samples: &self.samples[rows.clone()],
            targets: self.targets.rows(rows.clone()),
            weights: self.weights.get(rows.clone()).unwrap_or_default(),
            others: self.mixed(rows.clone()),
            mixtures: match self.mixer {
                Some(_) => &self.mixtures[rows],
                None => &[],
            },
            factor: self.shape.as_ref().map_or(1.0, LossShape::factor),
            step: self.step,
        }
    }

    /// Gathers some rows of a step's batch to the buffers, from row `to` on.
    fn gather(&mut self, sets: &Sets, step: u64, rows: Range<usize>, to: usize) {
        let first = step as usize * self.batch;
        let samples = &self.order.indices()[first + rows.start..first + rows.end];
        let rows = to..to + rows.len();
        self.samples[rows.clone()].copy_from_slice(samples);
        let inputs = rows.start * self.sample_len..rows.end * self.sample_len;
        let inputs = &mut self.inputs[self.next][inputs];
        self.targets
            .gather(&sets.train, &sets.scale, samples, rows.start);
        if let Some(weights) = sets.train.weights() {
            for (own, &sample) in self.weights[rows.clone()].iter_mut().zip(samples) {
                *own = weights[sample as usize];
            }
        }
        let step = self.first_step + step;
        if self.sample_len > 0 {
            let least = WORTH_A_THREAD.div_ceil(self.sample_len);
            let each = samples.len().div_ceil(self.threads.count()).max(least);
            let tiles = (
                pieces(samples, each),
                pieces_mut(&mut *inputs, each * self.sample_len),
            );
            self.threads.each(tiles, |_, (samples, inputs)| {
                sets.gather_training(samples, step, inputs);
            });
        }
        let Some(mixer) = &mut self.mixer else {
            return;
        };
        let labels = sets.train.labels();
        for (row, &sample) in rows.clone().zip(samples) {
            let mixture = mixer.mixture(step, sample, &sets.train_indices);
            self.others[row] = (labels[mixture.other as usize], mixture.share);
            self.mixtures[row] = mixture;
        }
        let images = inputs.chunks_exact_mut(self.sample_len.max(1));
        for (image, mixture) in images.zip(&self.mixtures[rows]) {
            mixer.mix(sets, step, mixture, image);
        }
    }

    /// The inputs that were made ready last, in the order of the batch where those are all.
    pub(crate) fn inputs(&self) -> &[f32] {
        &self.inputs[self.next]
    }

    /// The inputs that were made ready before those, where all rows are.
    pub(crate) fn inputs_before(&self) -> &[f32] {
        &self.inputs[1 - self.next]
    }

    /// What some rows were mixed with; nothing where none is.
    fn mixed(&self, rows: Range<usize>) -> &[(u32, f32)] {
        match self.mixer {
            Some(_) => &self.others[rows],
            None => &[],
        }
    }

    /// Where the rows of the program's lanes lie among those that were made ready; they follow each other.
    pub(crate) fn lanes(&self) -> &[Range<usize>] {
        &self.lanes
    }

    /// Some rows that were made ready, and which samples they are.
    pub(crate) fn rows(&self, rows: Range<usize>) -> (Batch<'_>, &[u32]) {
        let inputs = rows.start * self.sample_len..rows.end * self.sample_len;
        let inputs = &self.inputs()[inputs];
        let targets = self.targets.rows(rows.clone());
        (
            Batch {
                inputs,
                targets: match &self.shape {
                    Some(shape) => {
                        let weights = self.weights.get(rows.clone()).unwrap_or_default();
                        shape.targets(targets, self.mixed(rows.clone()), weights)
                    }
                    None => targets,
                },
            },
            &self.samples[rows],
        )
    }
}
