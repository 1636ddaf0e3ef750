//! The losses of numbers that a few numbers far off do not rule: the mean absolute error, Huber's, and that of a quantile.
//!
//! Where a loss has a kink, its slope there is 0, as PyTorch's is.

use super::LossSum;

/// What one row comes to: the mean over its numbers of `value`, which is a function of what was said less what is right.
pub(super) fn row(scores: &[f32], targets: &[f32], value: impl Fn(f64) -> f64) -> LossSum {
    let pairs = scores.iter().zip(targets);
    let values = pairs.map(|(&x, &target)| value(f64::from(x) - f64::from(target)));
    LossSum {
        loss: values.sum::<f64>() / scores.len() as f64,
        correct: 0,
        rows: 1,
    }
}

/// The size of an error, and how it changes with it.
pub(super) fn absolute(error: f64) -> (f64, f64) {
    (error.abs(), sign(error))
}

/// Half the square of an error up to `delta`; from there on a straight line, which the square goes over into smoothly.
pub(super) fn huber(delta: f64, error: f64) -> (f64, f64) {
    match error.abs() <= delta {
        true => (0.5 * error * error, error),
        false => (delta * (error.abs() - 0.5 * delta), delta * sign(error)),
    }
}

/// What an error costs where the number is to be predicted that this share of all is below: the share of the error if too
/// little was said, and the rest of it if too much was.
pub(super) fn quantile(share: f64, error: f64) -> (f64, f64) {
    match error < 0.0 {
        true => (-share * error, -share),
        false => ((1.0 - share) * error, (1.0 - share) * sign(error)),
    }
}

/// -1, 0 or 1; a NaN gets through.
fn sign(x: f64) -> f64 {
    match x == 0.0 {
        true => 0.0,
        false => x.signum(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Loss, Targets, tests::check};

    const TARGETS: [f32; 6] = [1.0, -1.0, 0.5, 0.0, 4.0, -3.0];
    const SCORES: [f32; 6] = [0.3, -1.2, 2.0, 0.1, 0.0, 5.0];

    /// The sum of two rows, each the mean of three numbers.
    fn mean_of(x: &[f64], value: impl Fn(f64) -> f64) -> f64 {
        let pairs = x.iter().zip(TARGETS);
        pairs.map(|(x, y)| value(x - f64::from(y))).sum::<f64>() / 3.0
    }

    #[test]
    fn values_and_gradients_are_those_of_the_definitions() {
        let targets = Targets::Numbers(&TARGETS);
        let sum = check(Loss::AbsoluteError, SCORES, targets, |x| {
            mean_of(x, f64::abs)
        });
        // `l1_loss` of these is the mean of 0.7, 0.2, 1.5, 0.1, 4 and 8.
        assert!((sum.loss / 2.0 - 14.5 / 6.0).abs() < 1e-6, "{sum:?}");

        let delta = 1.25;
        let sum = check(Loss::Huber { delta }, SCORES, targets, |x| {
            mean_of(x, |error| match error.abs() <= delta {
                true => error * error / 2.0,
                false => delta * (error.abs() - delta / 2.0),
            })
        });
        // `huber_loss` of these with `delta=1.25`.
        let inner = (0.49 + 0.04 + 0.01) / 2.0;
        let outer = 1.25 * (1.5 + 4.0 + 8.0 - 3.0 * 0.625);
        assert!(
            (sum.loss / 2.0 - (inner + outer) / 6.0).abs() < 1e-6,
            "{sum:?}"
        );

        for share in [0.1, 0.5, 0.9] {
            let loss = Loss::Quantile { share };
            check(loss, SCORES, targets, |x| {
                mean_of(x, |error| f64::max(-share * error, (1.0 - share) * error))
            });
        }
    }

    #[test]
    fn what_is_predicted_exactly_has_no_loss_and_no_slope() {
        for loss in [
            Loss::AbsoluteError,
            Loss::Huber { delta: 1.0 },
            Loss::Quantile { share: 0.9 },
        ] {
            let mut scores = [4.0];
            let sum = loss.gradient(&mut scores, 1, Targets::Numbers(&[4.0]), 1.0);
            assert_eq!((sum.loss, scores), (0.0, [0.0]), "{loss:?}");
            assert!(
                loss.row(&[f32::NAN], Targets::Numbers(&[0.0]))
                    .loss
                    .is_nan()
            );
        }
    }
}
