//! What is minimised: one file a loss, each with its value, its gradient and what it counts beside them.
//!
//! A loss looks at a row's scores and its target alone. Its value is computed in `f64` and rows are added
//! one by one, in their order: a sum over a set does not depend on how many rows are handed in at a time.

mod binary_cross_entropy;
mod cross_entropy;
mod far_numbers;
mod focal;
mod shaped;
mod squared_error;

pub use binary_cross_entropy::sigmoid;
pub use shaped::ShapedClasses;

use crate::math::Softmax;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What the model is to say of each row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Targets<'a> {
    /// The class of every row.
    Classes(&'a [u32]),
    /// The same where classes are weighted, smoothed or mixed.
    Shaped(ShapedClasses<'a>),
    /// As many numbers a row as the model has outputs, row after row. Of labels that a row may have several of,
    /// 1 says that it has one and 0 that it has not.
    Numbers(&'a [f32]),
    /// The same where rows count differently.
    Weighted(WeightedNumbers<'a>),
}

/// Numbers or labels of some rows, and how much each row counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeightedNumbers<'a> {
    /// As many numbers a row as the model has outputs.
    pub numbers: &'a [f32],
    /// How much each row counts.
    pub weights: &'a [f32],
    /// What every row's loss is multiplied by beside that: the rows of the whole batch over the sum of their weights.
    pub factor: f64,
}

/// How far what a model says is from what it is to say. All are means: over the rows, and where a row has
/// several numbers or labels, over those too, as PyTorch's are.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub enum Loss {
    /// Of classes, of which each row has one: the scores are their logits.
    #[default]
    CrossEntropy,
    /// Of numbers: the mean squared error.
    SquaredError,
    /// Of labels, of which each row has any number: the scores are their logits.
    BinaryCrossEntropy,
    /// Of numbers: the mean absolute error, whose best prediction is the median.
    AbsoluteError,
    /// Of numbers: half the squared error up to `delta`, a straight line beyond.
    Huber {
        /// From where on it is a straight line.
        delta: f64,
    },
    /// Of numbers: the pinball loss, whose best prediction is the number that a share of all is below.
    Quantile {
        /// The share, between 0 and 1.
        share: f64,
    },
    /// Of classes: cross-entropy that counts less the surer the right class is.
    Focal {
        /// How much less; 0 is the cross-entropy.
        gamma: f64,
    },
}

/// What the targets of a loss are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossTargets {
    /// A class of each row.
    Classes,
    /// Numbers of each row.
    Numbers,
    /// Labels of which a row has any number.
    Labels,
}

/// What a pass over some rows came to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LossSum {
    /// The rows' losses, added in order.
    pub loss: f64,
    /// How often the model was right: of classes, the rows whose largest score is at theirs; of labels, the
    /// labels told rightly from their absence. Numbers are never right, only near: 0.
    pub correct: u64,
    /// Number of rows.
    pub rows: u64,
}

impl LossSum {
    /// The same where the loss counts so much.
    fn weighted(self, weight: f64) -> Self {
        Self {
            loss: self.loss * weight,
            ..self
        }
    }
}

impl std::ops::AddAssign for LossSum {
    fn add_assign(&mut self, other: Self) {
        self.loss += other.loss;
        self.correct += other.correct;
        self.rows += other.rows;
    }
}

impl Targets<'_> {
    /// Number of rows, for a model with so many outputs.
    pub fn rows(&self, outputs: usize) -> usize {
        match self {
            Self::Classes(classes) => classes.len(),
            Self::Shaped(shaped) => shaped.classes.len(),
            Self::Numbers(numbers) => numbers.len() / outputs.max(1),
            Self::Weighted(weighted) => weighted.weights.len(),
        }
    }

    /// The target of one row, for a model with so many outputs.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn of_row(&self, row: usize, outputs: usize) -> Self {
        self.of_rows(row..row + 1, outputs)
    }

    /// The targets of some rows, for a model with so many outputs.
    ///
    /// # Panics
    /// When there are no such rows.
    pub fn of_rows(&self, rows: Range<usize>, outputs: usize) -> Self {
        let numbers = rows.start * outputs..rows.end * outputs;
        match self {
            Self::Classes(classes) => Self::Classes(&classes[rows]),
            Self::Shaped(shaped) => Self::Shaped(shaped.rows(rows)),
            Self::Numbers(all) => Self::Numbers(&all[numbers]),
            Self::Weighted(weighted) => Self::Weighted(WeightedNumbers {
                numbers: &weighted.numbers[numbers],
                weights: &weighted.weights[rows],
                ..*weighted
            }),
        }
    }
}

impl Loss {
    /// What its targets are.
    pub fn targets(self) -> LossTargets {
        match self {
            Self::CrossEntropy | Self::Focal { .. } => LossTargets::Classes,
            Self::BinaryCrossEntropy => LossTargets::Labels,
            Self::SquaredError
            | Self::AbsoluteError
            | Self::Huber { .. }
            | Self::Quantile { .. } => LossTargets::Numbers,
        }
    }

    /// What an error of one number costs, and how that changes with it, for the losses of [`far_numbers`].
    fn of_error(self, error: f64) -> (f64, f64) {
        match self {
            Self::Huber { delta } => far_numbers::huber(delta, error),
            Self::Quantile { share } => far_numbers::quantile(share, error),
            _ => far_numbers::absolute(error),
        }
    }

    /// What one row comes to.
    ///
    /// # Panics
    /// When the target is not of the loss's kind, or a class that there is no score of.
    pub fn row(self, scores: &[f32], target: Targets<'_>) -> LossSum {
        match (self, target) {
            (Self::CrossEntropy, Targets::Classes(&[class])) => {
                LossSum::of_class(&Softmax::of(scores), scores, class)
            }
            (Self::CrossEntropy, Targets::Shaped(shaped)) => shaped::row(scores, shaped),
            (Self::SquaredError, Targets::Numbers(numbers)) => squared_error::row(scores, numbers),
            (Self::BinaryCrossEntropy, Targets::Numbers(labels)) => {
                binary_cross_entropy::row(scores, labels)
            }
            (Self::Focal { gamma }, Targets::Classes(&[class])) => {
                focal::row(gamma, scores, class, 1.0)
            }
            (Self::Focal { gamma }, Targets::Shaped(shaped)) => {
                let (class, weight) = shaped.own_classes().next().expect("a row");
                focal::row(gamma, scores, class, weight)
            }
            (_, Targets::Weighted(weighted)) => {
                let row = self.row(scores, Targets::Numbers(weighted.numbers));
                row.weighted(weighted.factor * f64::from(weighted.weights[0]))
            }
            (loss, Targets::Numbers(numbers)) if loss.targets() == LossTargets::Numbers => {
                far_numbers::row(scores, numbers, |error| loss.of_error(error).0)
            }
            (loss, target) => panic!("{loss:?} of {target:?}"),
        }
    }

    /// Sums the losses of rows of `outputs` scores, and overwrites the scores with the gradient of the loss,
    /// times `scale`.
    ///
    /// # Panics
    /// When the targets are not of the loss's kind, or a class that there is no score of.
    pub(crate) fn gradient(
        self,
        scores: &mut [f32],
        outputs: usize,
        targets: Targets<'_>,
        scale: f64,
    ) -> LossSum {
        let rows = scores.chunks_exact_mut(outputs);
        match (self, targets) {
            (Self::CrossEntropy, Targets::Classes(classes)) => {
                cross_entropy::gradient(rows, classes, scale)
            }
            (Self::CrossEntropy, Targets::Shaped(shaped)) => shaped::gradient(rows, shaped, scale),
            (Self::SquaredError, Targets::Numbers(numbers)) => {
                let rows = rows.zip(numbers.chunks_exact(outputs));
                of_numbers(rows, scale, squared_error::row, squared_error::slope)
            }
            (Self::BinaryCrossEntropy, Targets::Numbers(labels)) => {
                use binary_cross_entropy::{row, slope};
                of_numbers(rows.zip(labels.chunks_exact(outputs)), scale, row, slope)
            }
            (Self::Focal { gamma }, Targets::Classes(classes)) => {
                let classes = classes.iter().map(|&class| (class, 1.0));
                focal::gradient(gamma, rows.zip(classes), scale)
            }
            (Self::Focal { gamma }, Targets::Shaped(shaped)) => {
                focal::gradient(gamma, rows.zip(shaped.own_classes()), scale)
            }
            (_, Targets::Weighted(weighted)) => {
                let targets = weighted.numbers.chunks_exact(outputs).zip(weighted.weights);
                let mut sum = LossSum::default();
                for (row, (numbers, &weight)) in rows.zip(targets) {
                    let weight = weighted.factor * f64::from(weight);
                    let target = Targets::Numbers(numbers);
                    let row = self.gradient(row, outputs, target, scale * weight);
                    sum += row.weighted(weight);
                }
                sum
            }
            (loss, Targets::Numbers(numbers)) if loss.targets() == LossTargets::Numbers => {
                let rows = rows.zip(numbers.chunks_exact(outputs));
                let row = |scores: &[f32], numbers: &[f32]| {
                    far_numbers::row(scores, numbers, |error| loss.of_error(error).0)
                };
                let slope = |x: f32, target: f32| loss.of_error(f64::from(x) - f64::from(target)).1;
                of_numbers(rows, scale, row, slope)
            }
            (loss, targets) => panic!("{loss:?} of {targets:?}"),
        }
    }
}

/// Sums the losses of rows of numbers, and overwrites their scores with the gradient of the mean over a row's numbers,
/// times `scale`.
fn of_numbers<'a>(
    rows: impl Iterator<Item = (&'a mut [f32], &'a [f32])>,
    scale: f64,
    row: impl Fn(&[f32], &[f32]) -> LossSum,
    slope: impl Fn(f32, f32) -> f64,
) -> LossSum {
    let mut sum = LossSum::default();
    for (scores, targets) in rows {
        sum += row(scores, targets);
        let scale = scale / scores.len() as f64;
        for (x, &target) in scores.iter_mut().zip(targets) {
            *x = (slope(*x, target) * scale) as f32;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares a loss and its gradient of two rows of three scores with what they are by definition.
    pub(super) fn check(
        loss: Loss,
        scores: [f32; 6],
        targets: Targets<'_>,
        value: impl Fn(&[f64]) -> f64,
    ) -> LossSum {
        let mut gradient = scores;
        let sum = loss.gradient(&mut gradient, 3, targets, 0.5);
        let wide: Vec<f64> = scores.iter().map(|&x| f64::from(x)).collect();
        assert!((sum.loss - value(&wide)).abs() < 1e-9, "{}", sum.loss);
        for i in 0..scores.len() {
            let (mut up, mut down) = (wide.clone(), wide.clone());
            up[i] += 1e-6;
            down[i] -= 1e-6;
            let slope = (value(&up) - value(&down)) / 2e-6 * 0.5;
            assert!((f64::from(gradient[i]) - slope).abs() < 1e-6, "{i}");
        }
        let mut rows = LossSum::default();
        for (row, scores) in scores.chunks(3).enumerate() {
            rows += loss.row(scores, targets.of_row(row, 3));
        }
        assert_eq!(rows, sum, "row by row");
        sum
    }

    /// A batch, and what PyTorch made of it.
    #[derive(serde::Deserialize)]
    struct Case {
        name: String,
        outputs: usize,
        scores: Vec<f32>,
        numbers: Vec<f32>,
        labels: Vec<u32>,
        loss: f64,
        gradient: Vec<f64>,
    }

    #[derive(serde::Deserialize)]
    struct Reference {
        other_losses: Vec<Case>,
    }

    #[test]
    fn mean_and_gradient_of_a_batch_are_pytorchs() {
        let text = include_str!("../../tests/it/reference/reference.json");
        let reference: Reference = serde_json::from_str(text).unwrap();
        let names = reference.other_losses.iter().map(|case| &case.name[..]);
        assert_eq!(
            names.collect::<Vec<_>>(),
            ["mae", "huber", "quantile", "focal"]
        );
        for case in reference.other_losses {
            let loss = match &case.name[..] {
                "mae" => Loss::AbsoluteError,
                "huber" => Loss::Huber { delta: 1.25 },
                "quantile" => Loss::Quantile { share: 0.9 },
                _ => Loss::Focal { gamma: 2.5 },
            };
            let targets = match loss.targets() {
                LossTargets::Classes => Targets::Classes(&case.labels),
                _ => Targets::Numbers(&case.numbers),
            };
            let rows = case.labels.len() as f64;
            let mut gradient = case.scores.clone();
            let sum = loss.gradient(&mut gradient, case.outputs, targets, 1.0 / rows);
            assert!((sum.loss / rows - case.loss).abs() < 1e-6, "{}", case.name);
            for (ours, theirs) in gradient.iter().zip(&case.gradient) {
                assert!(
                    (f64::from(*ours) - theirs).abs() < 1e-6,
                    "{}: {ours} {theirs}",
                    case.name
                );
            }
        }
    }

    #[test]
    fn weighted_rows_are_those_of_the_definition() {
        let numbers = [1.0f32, 0.0, 1.0, 0.0, 1.0, 0.0];
        let scores = [0.3, -1.2, 2.0, 0.1, -0.5, 5.0];
        let weights = [3.0, 0.5];
        let targets = Targets::Weighted(WeightedNumbers {
            numbers: &numbers,
            weights: &weights,
            factor: 2.0 / 3.5,
        });
        for loss in [Loss::SquaredError, Loss::BinaryCrossEntropy] {
            let value = |x: &[f64]| {
                let one = |at: usize| {
                    let (x, target) = (x[at], f64::from(numbers[at]));
                    let of_number = match loss {
                        Loss::SquaredError => (x - target).powi(2),
                        _ => (1.0 + x.exp()).ln() - target * x,
                    };
                    of_number * f64::from(weights[at / 3]) / 3.0 * 2.0 / 3.5
                };
                (0..6).map(one).sum()
            };
            check(loss, scores, targets, value);
        }
    }
}
