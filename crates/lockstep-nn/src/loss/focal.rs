//! The focal loss of classes: cross-entropy that counts less the surer the network is of the right class, so that training
//! looks at what is hard. A row's loss is `-(1 - p)^gamma * ln(p)`, with the probability `p` of its class.

use super::LossSum;
use crate::math::{Softmax, exp, ln};

/// A row's loss if `class` is its class, and what the gradient of its scores is a multiple of.
fn value_and_slope(gamma: f64, softmax: &Softmax, score: f32) -> (f64, f64) {
    let (probability, loss) = (softmax.probability(score), softmax.loss(score));
    let rest = 1.0 - probability;
    // Of a class that is certain, nothing is left to learn.
    if rest == 0.0 && gamma > 0.0 {
        return (0.0, 0.0);
    }
    let less = exp(gamma * ln(rest));
    let less = if gamma == 0.0 { 1.0 } else { less };
    (
        less * loss,
        less * (1.0 + gamma * probability * loss / rest),
    )
}

/// What one row comes to, times `weight`.
pub(super) fn row(gamma: f64, scores: &[f32], class: u32, weight: f64) -> LossSum {
    let softmax = Softmax::of(scores);
    let plain = LossSum::of_class(&softmax, scores, class);
    let (loss, _) = value_and_slope(gamma, &softmax, scores[class as usize]);
    LossSum {
        loss: loss * weight,
        ..plain
    }
}

/// Sums the losses of rows, each of a class and with a weight, and overwrites their scores with the gradient, times `scale`.
pub(super) fn gradient<'a>(
    gamma: f64,
    rows: impl Iterator<Item = (&'a mut [f32], (u32, f64))>,
    scale: f64,
) -> LossSum {
    let mut sum = LossSum::default();
    for (scores, (class, weight)) in rows {
        sum += row(gamma, scores, class, weight);
        let softmax = Softmax::of(scores);
        let (_, slope) = value_and_slope(gamma, &softmax, scores[class as usize]);
        let slope = slope * weight * scale;
        for (j, x) in scores.iter_mut().enumerate() {
            let target = if j == class as usize { 1.0 } else { 0.0 };
            *x = ((softmax.probability(*x) - target) * slope) as f32;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::{Loss, ShapedClasses, Targets, tests::check};

    const CLASSES: [u32; 2] = [2, 1];
    const SCORES: [f32; 6] = [0.3, -1.2, 2.0, 0.1, 0.0, 5.0];

    fn definition(x: &[f64], gamma: f64, weights: [f64; 2]) -> f64 {
        let rows = x.chunks(3).zip(CLASSES).zip(weights);
        let each = rows.map(|((row, class), weight)| {
            let whole: f64 = row.iter().map(|x| x.exp()).sum();
            let probability = row[class as usize].exp() / whole;
            -weight * (1.0 - probability).powf(gamma) * probability.ln()
        });
        each.sum()
    }

    #[test]
    fn value_and_gradient_are_those_of_the_definition() {
        for gamma in [0.0, 0.5, 1.0, 2.0, 3.5] {
            let loss = Loss::Focal { gamma };
            let sum = check(loss, SCORES, Targets::Classes(&CLASSES), |x| {
                definition(x, gamma, [1.0; 2])
            });
            assert_eq!((sum.correct, sum.rows), (1, 2));
            let weighted = ShapedClasses {
                classes: &CLASSES,
                others: &[],
                weights: &[1.0, 4.0, 0.5],
                samples: &[3.0, 0.25],
                smoothing: 0.0,
                factor: 0.8,
            };
            let weights = [0.5 * 3.0 * 0.8, 4.0 * 0.25 * 0.8];
            check(loss, SCORES, Targets::Shaped(weighted), |x| {
                definition(x, gamma, weights)
            });
        }
    }

    #[test]
    fn without_gamma_it_is_the_cross_entropy() {
        let mut ours = SCORES;
        let mut plain = SCORES;
        let targets = Targets::Classes(&CLASSES);
        let sums = [
            Loss::Focal { gamma: 0.0 }.gradient(&mut ours, 3, targets, 0.5),
            Loss::CrossEntropy.gradient(&mut plain, 3, targets, 0.5),
        ];
        assert_eq!((sums[0], ours), (sums[1], plain));
    }

    #[test]
    fn a_class_that_is_certain_or_lost_has_finite_numbers_and_a_nan_shows() {
        for gamma in [0.5, 2.0] {
            let loss = Loss::Focal { gamma };
            for class in [0, 1] {
                let mut scores = [1e30, -1e30];
                let sum = loss.gradient(&mut scores, 2, Targets::Classes(&[class]), 1.0);
                assert!(
                    sum.loss.is_finite() && scores.iter().all(|x| x.is_finite()),
                    "{sum:?} {scores:?}"
                );
            }
            let row = loss.row(&[f32::NAN, 0.0], Targets::Classes(&[0]));
            assert!(row.loss.is_nan());
        }
    }
}
