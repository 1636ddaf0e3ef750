//! How rows count in the loss: weights by class and by sample, smoothing, and mixtures of two classes.
//!
//! A weighted mean is over the sum of the batch's weights. Every rank knows the order of all samples and all labels, so
//! each adds up the weights of the whole batch by itself, in the batch's order: the same sum on any number of workers,
//! with nothing exchanged.

use crate::sets::Sets;
use lockstep_cuda::TargetShape;
use lockstep_nn::{ShapedClasses, Targets, WeightedNumbers};
use lockstep_resolve::TrainingSettings;

/// How the rows of a batch count.
pub(crate) struct LossShape {
    /// By class; empty where all count alike.
    weights: Vec<f32>,
    /// Whether samples have weights of their own.
    weighted: bool,
    smoothing: f32,
    /// Rows of the batch over the sum of their weights.
    factor: f64,
}

impl LossShape {
    /// None where every row counts as it is.
    pub(crate) fn new(settings: &TrainingSettings, sets: &Sets) -> Option<Self> {
        let learner = &settings.learner;
        let labels = sets.train.labels();
        let labels = (sets.train_indices.iter()).map(|&sample| labels[sample as usize]);
        let weights = learner.class_weights.as_ref();
        let weights = weights.map(|weights| weights.by_class(labels, sets.train.classes()));
        let weights = weights.unwrap_or_default();
        let mixes = settings.augment.is_some_and(|augment| augment.mixes());
        let weighted = sets.train.weights().is_some();
        let shapes = mixes || weighted || !weights.is_empty() || learner.label_smoothing > 0.0;
        shapes.then_some(Self {
            weights,
            weighted,
            smoothing: learner.label_smoothing as f32,
            factor: 1.0,
        })
    }

    /// Begins a batch of these samples, in its order.
    pub(crate) fn begin(&mut self, samples: impl ExactSizeIterator<Item = WeighedSample>) {
        if self.weights.is_empty() && !self.weighted {
            return;
        }
        let rows = samples.len() as f64;
        let weight = |class| ShapedClasses::weight(&self.weights, class);
        let weights = samples.map(|sample| {
            let share = f64::from(sample.share);
            let of_class = (1.0 - share) * weight(sample.class) + share * weight(sample.other);
            f64::from(sample.weight) * of_class
        });
        let sum: f64 = weights.sum();
        // Of a batch in which nothing counts, nothing is learned.
        self.factor = if sum > 0.0 { rows / sum } else { 0.0 };
    }

    /// How rows count, for a device that computes losses by itself.
    pub(crate) fn of_targets(&self, is_mixed: bool) -> TargetShape {
        TargetShape {
            class_weights: self.weights.clone(),
            is_weighted: self.weighted,
            is_mixed,
            smoothing: self.smoothing,
        }
    }

    /// What every row of the batch counts beside that.
    pub(crate) fn factor(&self) -> f64 {
        self.factor
    }

    /// The targets of some rows of the batch, what these are mixed with, and how much each counts.
    pub(crate) fn targets<'a>(
        &'a self,
        targets: Targets<'a>,
        others: &'a [(u32, f32)],
        samples: &'a [f32],
    ) -> Targets<'a> {
        match targets {
            Targets::Classes(classes) => Targets::Shaped(ShapedClasses {
                classes,
                others,
                weights: &self.weights,
                samples,
                smoothing: self.smoothing,
                factor: self.factor,
            }),
            Targets::Numbers(numbers) => Targets::Weighted(WeightedNumbers {
                numbers,
                weights: samples,
                factor: self.factor,
            }),
            targets => targets,
        }
    }
}

/// A sample of a batch as far as it decides what the batch counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WeighedSample {
    /// What it counts by itself.
    pub(crate) weight: f32,
    /// Its class; 0 where samples have none.
    pub(crate) class: u32,
    /// The class of what it is mixed with, and the share of that.
    pub(crate) other: u32,
    pub(crate) share: f32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_counts_by_the_weights_of_its_whole_batch() {
        let mut shape = LossShape {
            weights: vec![1.0, 3.0],
            weighted: false,
            smoothing: 0.0,
            factor: 1.0,
        };
        let mut factor = |samples: &[(f32, u32, u32, f32)]| {
            let sample = |&(weight, class, other, share)| WeighedSample {
                weight,
                class,
                other,
                share,
            };
            shape.begin(samples.iter().map(sample));
            shape.factor
        };
        // Class 2 has no weight of its own and counts 1.
        let classes = [0, 1, 1, 2].map(|class| (1.0, class, 0, 0.0));
        assert_eq!(factor(&classes), 4.0 / 8.0);
        assert_eq!(factor(&[(1.0, 0, 1, 0.25), (1.0, 0, 0, 0.5)]), 2.0 / 2.5);
        assert_eq!(factor(&[(4.0, 0, 0, 0.0), (0.5, 1, 0, 0.0)]), 2.0 / 5.5);
        assert_eq!(factor(&[(0.0, 0, 0, 0.0)]), 0.0);
    }
}
