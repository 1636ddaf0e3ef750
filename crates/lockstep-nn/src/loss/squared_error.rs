//! The mean squared error: the loss of numbers.

use super::LossSum;

/// What one row comes to: the mean over its numbers.
pub(super) fn row(scores: &[f32], targets: &[f32]) -> LossSum {
    let pairs = scores.iter().zip(targets);
    let squares = pairs.map(|(&x, &target)| {
        let error = f64::from(x) - f64::from(target);
        error * error
    });
    LossSum {
        loss: squares.sum::<f64>() / scores.len() as f64,
        correct: 0,
        rows: 1,
    }
}

/// How the sum of squares changes with a score.
pub(super) fn slope(x: f32, target: f32) -> f64 {
    2.0 * (f64::from(x) - f64::from(target))
}

#[cfg(test)]
mod tests {
    use super::super::{Loss, Targets, tests::check};

    #[test]
    fn value_and_gradient_are_those_of_the_definition() {
        let targets = [1.0f32, -1.0, 0.5, 0.0, 4.0, -3.0];
        let scores = [0.3, -1.2, 2.0, 0.1, 0.0, 5.0];
        let sum = check(
            Loss::SquaredError,
            scores,
            Targets::Numbers(&targets),
            |x| {
                let squares = x
                    .iter()
                    .zip(targets)
                    .map(|(x, y)| (x - f64::from(y)).powi(2));
                squares.sum::<f64>() / 3.0
            },
        );
        // `mse_loss` of these is 13.7983…: the mean of both rows.
        let mean = (0.49 + 0.04 + 2.25 + 0.01 + 16.0 + 64.0) / 6.0;
        assert!((sum.loss / 2.0 - mean).abs() < 1e-6);
        assert_eq!((sum.correct, sum.rows), (0, 2));
    }

    #[test]
    fn a_nan_shows() {
        let row = Loss::SquaredError.row(&[f32::NAN], Targets::Numbers(&[0.0]));
        assert!(row.loss.is_nan());
    }
}
