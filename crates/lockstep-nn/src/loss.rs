//! Softmax cross-entropy: the loss of a classifier, and where its gradient begins.

use crate::math::{exp, ln};

/// What a pass over some rows came to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LossSum {
    /// The rows' losses, added in order.
    pub loss: f64,
    /// Rows whose largest logit is at the right class.
    pub correct: u64,
    /// Number of rows.
    pub rows: u64,
}

impl std::ops::AddAssign for LossSum {
    fn add_assign(&mut self, other: Self) {
        self.loss += other.loss;
        self.correct += other.correct;
        self.rows += other.rows;
    }
}

/// Sums the rows' losses and overwrites the logits with the gradient of the loss, times `scale`.
pub(crate) fn cross_entropy(logits: &mut [f32], labels: &[u32], scale: f64) -> LossSum {
    let mut sum = LossSum::default();
    for (row, &label) in logits
        .chunks_exact_mut(classes(logits.len(), labels))
        .zip(labels)
    {
        let softmax = Softmax::of(row);
        sum += softmax.loss(row, label);
        for (j, x) in row.iter_mut().enumerate() {
            let target = if j == label as usize { 1.0 } else { 0.0 };
            *x = ((softmax.probability(*x) - target) * scale) as f32;
        }
    }
    sum
}

/// Adds the rows' losses to a sum, one by one.
pub(crate) fn evaluate(logits: &[f32], labels: &[u32], sum: &mut LossSum) {
    for (row, &label) in logits
        .chunks_exact(classes(logits.len(), labels))
        .zip(labels)
    {
        *sum += Softmax::of(row).loss(row, label);
    }
}

fn classes(logits: usize, labels: &[u32]) -> usize {
    (logits / labels.len().max(1)).max(1)
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
    use super::*;

    #[test]
    fn the_gradient_agrees_with_finite_differences() {
        let logits = [0.3f32, -1.2, 2.0, 0.1, 0.0, 5.0];
        let labels = [2, 1];
        let value = |logits: &[f64]| -> f64 {
            logits
                .chunks(3)
                .zip(labels)
                .map(|(row, label)| {
                    row.iter().map(|x| x.exp()).sum::<f64>().ln() - row[label as usize]
                })
                .sum()
        };
        let mut gradient = logits;
        let sum = cross_entropy(&mut gradient, &labels, 0.5);
        let wide: Vec<f64> = logits.iter().map(|&x| f64::from(x)).collect();
        assert!((sum.loss - value(&wide)).abs() < 1e-9);
        assert_eq!((sum.correct, sum.rows), (1, 2));
        for i in 0..6 {
            let (mut up, mut down) = (wide.clone(), wide.clone());
            up[i] += 1e-6;
            down[i] -= 1e-6;
            let slope = (value(&up) - value(&down)) / 2e-6 * 0.5;
            assert!((f64::from(gradient[i]) - slope).abs() < 1e-6, "{i}");
        }
    }

    #[test]
    fn large_logits_do_not_overflow_and_a_nan_shows() {
        let sum = |logits: &[f32], labels: &[u32]| {
            let mut sum = LossSum::default();
            evaluate(logits, labels, &mut sum);
            sum
        };
        let large = sum(&[1e30, -1e30], &[1]);
        assert!(large.loss > 1e30 && large.loss.is_finite());
        assert!(sum(&[f32::NAN, 0.0], &[0]).loss.is_nan());
    }
}
