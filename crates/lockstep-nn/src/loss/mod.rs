//! What is minimised: one file a loss, each with its value, its gradient and what it counts beside them.
//!
//! A loss looks at a row's scores and its target alone. Its value is computed in `f64` and rows are added
//! one by one, in their order: a sum over a set does not depend on how many rows are handed in at a time.

mod binary_cross_entropy;
mod cross_entropy;
mod shaped;
mod squared_error;

pub use binary_cross_entropy::sigmoid;
pub use shaped::ShapedClasses;

use crate::math::Softmax;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Loss {
    /// Of classes, of which each row has one: the scores are their logits.
    #[default]
    CrossEntropy,
    /// Of numbers: the mean squared error.
    SquaredError,
    /// Of labels, of which each row has any number: the scores are their logits.
    BinaryCrossEntropy,
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
        match self {
            Self::Classes(classes) => Self::Classes(&classes[row..=row]),
            Self::Shaped(shaped) => Self::Shaped(shaped.rows(row..row + 1)),
            Self::Numbers(numbers) => Self::Numbers(&numbers[row * outputs..][..outputs]),
            Self::Weighted(weighted) => Self::Weighted(WeightedNumbers {
                numbers: &weighted.numbers[row * outputs..][..outputs],
                weights: &weighted.weights[row..=row],
                ..*weighted
            }),
        }
    }
}

impl Loss {
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
            (_, Targets::Weighted(weighted)) => {
                let row = self.row(scores, Targets::Numbers(weighted.numbers));
                row.weighted(weighted.factor * f64::from(weighted.weights[0]))
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
