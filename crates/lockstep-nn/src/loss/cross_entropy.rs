//! Softmax cross-entropy: the loss of classes, of which each row has one.

use super::LossSum;
use crate::math::{exp, ln};

/// Sums the rows' losses and overwrites their scores with the gradient of the loss, times `scale`.
pub(super) fn gradient<'a>(
    rows: impl Iterator<Item = &'a mut [f32]>,
    classes: &[u32],
    scale: f64,
) -> LossSum {
    let mut sum = LossSum::default();
    for (row, &class) in rows.zip(classes) {
        let softmax = Softmax::of(row);
        sum += softmax.loss(row, class);
        for (j, x) in row.iter_mut().enumerate() {
            let target = if j == class as usize { 1.0 } else { 0.0 };
            *x = ((softmax.probability(*x) - target) * scale) as f32;
        }
    }
    sum
}

/// What the probabilities of one row of scores have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Softmax {
    /// The class with the largest score; of equal ones the first.
    pub best: usize,
    /// Taken off every logit, so that no exponential overflows.
    largest: f64,
    sum: f64,
}

impl Softmax {
    /// Of the scores of one row, one a class.
    pub fn of(row: &[f32]) -> Self {
        let first = (0, f32::NEG_INFINITY);
        let (best, largest) =
            row.iter().enumerate().fold(
                first,
                |best, (j, &x)| {
                    if x > best.1 { (j, x) } else { best }
                },
            );
        let largest = f64::from(largest);
        let sum = row.iter().map(|&x| exp(f64::from(x) - largest)).sum();
        Self { best, largest, sum }
    }

    /// The probability of a class with this score.
    pub fn probability(&self, logit: f32) -> f64 {
        exp(f64::from(logit) - self.largest) / self.sum
    }

    /// The loss of the row that this is of, if `label` is its class.
    ///
    /// # Panics
    /// When there is no such class.
    pub fn loss(&self, row: &[f32], label: u32) -> LossSum {
        let label = label as usize;
        LossSum {
            loss: ln(self.sum) - (f64::from(row[label]) - self.largest),
            correct: u64::from(self.best == label),
            rows: 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Loss, Targets, tests::check};

    #[test]
    fn value_and_gradient_are_those_of_the_definition() {
        let classes = [2, 1];
        let scores = [0.3f32, -1.2, 2.0, 0.1, 0.0, 5.0];
        let loss = Loss::CrossEntropy;
        let sum = check(loss, scores, Targets::Classes(&classes), |x| {
            let rows = x.chunks(3).zip(classes);
            let each = rows.map(|(row, class)| {
                row.iter().map(|x| x.exp()).sum::<f64>().ln() - row[class as usize]
            });
            each.sum()
        });
        assert_eq!((sum.correct, sum.rows), (1, 2));
    }

    #[test]
    fn large_scores_do_not_overflow_and_a_nan_shows() {
        let loss = |scores: &[f32], class: u32| {
            let row = Loss::CrossEntropy.row(scores, Targets::Classes(&[class]));
            row.loss
        };
        let large = loss(&[1e30, -1e30], 1);
        assert!(large > 1e30 && large.is_finite());
        assert!(loss(&[f32::NAN, 0.0], 0).is_nan());
    }
}
