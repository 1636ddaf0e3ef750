//! Softmax cross-entropy: the loss of classes, of which each row has one.

use super::LossSum;
use crate::math::Softmax;

/// Sums the rows' losses and overwrites their scores with the gradient of the loss, times `scale`.
pub(super) fn gradient<'a>(
    rows: impl Iterator<Item = &'a mut [f32]>,
    classes: &[u32],
    scale: f64,
) -> LossSum {
    let mut sum = LossSum::default();
    for (row, &class) in rows.zip(classes) {
        let softmax = Softmax::of(row);
        sum += LossSum::of_class(&softmax, row, class);
        for (j, x) in row.iter_mut().enumerate() {
            let target = if j == class as usize { 1.0 } else { 0.0 };
            *x = ((softmax.probability(*x) - target) * scale) as f32;
        }
    }
    sum
}

impl LossSum {
    /// The loss of a row of scores with this softmax, if `label` is its class.
    ///
    /// # Panics
    /// When there is no such class.
    #[inline]
    pub fn of_class(softmax: &Softmax, row: &[f32], label: u32) -> Self {
        let label = label as usize;
        Self {
            loss: softmax.loss(row[label]),
            correct: u64::from(softmax.best == label),
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
