//! Binary cross-entropy: the loss of labels of which a row may have any number. Scores are logits.

use super::LossSum;
use crate::math::{exp, ln};

/// The probability that a score stands for, where it stands for itself alone.
pub fn sigmoid(score: f32) -> f64 {
    let small = exp(-f64::from(score).abs());
    match score < 0.0 {
        true => small / (1.0 + small),
        false => 1.0 / (1.0 + small),
    }
}

/// What one row comes to: the mean over its labels.
pub(super) fn row(scores: &[f32], labels: &[f32]) -> LossSum {
    let (mut loss, mut correct) = (0.0, 0);
    for (&x, &label) in scores.iter().zip(labels) {
        let (x, label) = (f64::from(x), f64::from(label));
        // -ln of the probability of what is right, so that neither overflows. A NaN gets through.
        loss += x.max(0.0) - x * label + ln(1.0 + exp(-x.abs()));
        correct += u64::from((x > 0.0) == (label > 0.5));
    }
    LossSum {
        loss: loss / scores.len() as f64,
        correct,
        rows: 1,
    }
}

/// How the sum over the labels changes with a score.
pub(super) fn slope(x: f32, label: f32) -> f64 {
    sigmoid(x) - f64::from(label)
}

#[cfg(test)]
mod tests {
    use super::super::{Loss, Targets, tests::check};
    use super::sigmoid;

    #[test]
    fn value_and_gradient_are_those_of_the_definition() {
        let labels = [1.0f32, 0.0, 1.0, 0.0, 1.0, 0.0];
        let scores = [0.3, -1.2, 2.0, 0.1, -0.5, 5.0];
        let loss = Loss::BinaryCrossEntropy;
        let sum = check(loss, scores, Targets::Numbers(&labels), |x| {
            let each = x.iter().zip(labels).map(|(x, label)| {
                let probability = 1.0 / (1.0 + (-x).exp());
                let label = f64::from(label);
                -label * probability.ln() - (1.0 - label) * (1.0 - probability).ln()
            });
            each.sum::<f64>() / 3.0
        });
        assert_eq!((sum.correct, sum.rows), (3, 2));
    }

    #[test]
    fn large_scores_do_not_overflow_and_a_nan_shows() {
        let loss = |score: f32, label: f32| {
            let row = Loss::BinaryCrossEntropy.row(&[score], Targets::Numbers(&[label]));
            row.loss
        };
        assert_eq!((loss(1e30, 1.0), loss(-1e30, 0.0)), (0.0, 0.0));
        assert!((loss(1e30, 0.0) - 1e30).abs() < 1e24 && loss(-1e30, 1.0).is_finite());
        assert!(loss(f32::NAN, 0.0).is_nan() && loss(f32::NAN, 1.0).is_nan());
        assert_eq!((sigmoid(1e30), sigmoid(-1e30)), (1.0, 0.0));
    }
}
