//! How classes count in the loss: weights by class, smoothing, and mixtures of two.
//!
//! A weighted mean is over the sum of the batch's weights. Every rank knows the order of all samples and all labels, so
//! each adds up the weights of the whole batch by itself, in the batch's order: the same sum on any number of workers,
//! with nothing exchanged.

use crate::sets::Sets;
use lockstep_job::{ClassWeights, WeightRule};
use lockstep_nn::{ShapedClasses, Targets};
use lockstep_resolve::TrainingSettings;

/// How the classes of a batch count.
pub(crate) struct LossShape {
    /// By class; empty where all count alike.
    weights: Vec<f32>,
    smoothing: f32,
    /// Rows of the batch over the sum of their weights.
    factor: f64,
}

impl LossShape {
    /// None where every class counts as it is.
    pub(crate) fn new(settings: &TrainingSettings, sets: &Sets) -> Option<Self> {
        let learner = &settings.learner;
        let weights = match &learner.class_weights {
            None => Vec::new(),
            Some(ClassWeights::Each(weights)) => {
                weights.iter().map(|&weight| weight as f32).collect()
            }
            Some(ClassWeights::Rule(WeightRule::Balanced)) => {
                let labels = sets.train.labels();
                let labels = sets
                    .train_indices
                    .iter()
                    .map(|&sample| labels[sample as usize]);
                balanced(labels, sets.train.classes())
            }
        };
        let augment = settings.augment.as_ref();
        let mixes = augment.is_some_and(|augment| augment.mixup.or(augment.cutmix).is_some());
        let shapes = mixes || !weights.is_empty() || learner.label_smoothing > 0.0;
        shapes.then_some(Self {
            weights,
            smoothing: learner.label_smoothing as f32,
            factor: 1.0,
        })
    }

    /// Begins a batch of samples of these classes, in its order, each with the class and the share of what it is mixed
    /// with.
    pub(crate) fn begin(&mut self, classes: impl ExactSizeIterator<Item = (u32, (u32, f32))>) {
        if self.weights.is_empty() {
            return;
        }
        let rows = classes.len() as f64;
        let weight = |class| ShapedClasses::weight(&self.weights, class);
        let weights = classes.map(|(class, (other, share))| {
            let share = f64::from(share);
            (1.0 - share) * weight(class) + share * weight(other)
        });
        self.factor = rows / weights.sum::<f64>();
    }

    /// The targets of some rows of the batch, and what these are mixed with.
    pub(crate) fn targets<'a>(
        &'a self,
        targets: Targets<'a>,
        others: &'a [(u32, f32)],
    ) -> Targets<'a> {
        match targets {
            Targets::Classes(classes) => Targets::Shaped(ShapedClasses {
                classes,
                others,
                weights: &self.weights,
                smoothing: self.smoothing,
                factor: self.factor,
            }),
            targets => targets,
        }
    }
}

/// Weights that let every class that occurs count as much as any other, with a mean of 1 over the samples: what
/// scikit-learn calls balanced.
fn balanced(labels: impl Iterator<Item = u32>, classes: usize) -> Vec<f32> {
    let mut counts = vec![0u64; classes];
    for label in labels {
        counts[label as usize] += 1;
    }
    let samples: u64 = counts.iter().sum();
    let present = counts.iter().filter(|&&count| count > 0).count();
    let weight = |count| match count {
        0 => 1.0,
        count => (samples as f64 / (present as f64 * count as f64)) as f32,
    };
    counts.into_iter().map(weight).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balanced_weights_are_those_of_scikit_learn() {
        // compute_class_weight("balanced", classes=[0, 1, 3], y=[0, 0, 0, 1, 3, 3])
        let labels = [0, 0, 0, 1, 3, 3].into_iter();
        assert_eq!(balanced(labels, 4), [2.0 / 3.0, 2.0, 1.0, 1.0]);
    }

    #[test]
    fn a_row_counts_by_the_weights_of_its_whole_batch() {
        let mut shape = LossShape {
            weights: vec![1.0, 3.0],
            smoothing: 0.0,
            factor: 1.0,
        };
        // Class 2 has no weight of its own and counts 1.
        shape.begin([0, 1, 1, 2].map(|class| (class, (0, 0.0))).into_iter());
        assert_eq!(shape.factor, 4.0 / 8.0);
        shape.begin([(0, (1, 0.25)), (0, (0, 0.5))].into_iter());
        assert_eq!(shape.factor, 2.0 / 2.5);
    }
}
