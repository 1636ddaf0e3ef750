//! Cross-entropy of classes that are weighted, smoothed or mixed.
//!
//! A row's target is a share of each class: all of its own; with smoothing, a little of every one; of a mixture of two
//! samples, some of each. The loss is `-sum(weight * share * ln(probability))` over the classes. That is PyTorch's
//! `cross_entropy` with `weight` and `label_smoothing`: its mean is over the weights of the rows' classes, so a row
//! counts [`ShapedClasses::factor`] times, a number that all lanes of a batch have in common.

use super::LossSum;
use crate::math::Softmax;

/// The classes of some rows, and how they count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShapedClasses<'a> {
    /// The class of every row.
    pub classes: &'a [u32],
    /// Where rows are mixtures of two samples, the class of every row's other sample and that one's share; else empty.
    pub others: &'a [(u32, f32)],
    /// How much each class counts; if empty, all count 1. Classes beyond it count 1.
    pub weights: &'a [f32],
    /// How much each row counts beside its class; if empty, all count 1.
    pub samples: &'a [f32],
    /// The part of a target that is spread evenly over all classes.
    pub smoothing: f32,
    /// What every row's loss is multiplied by: the rows of the whole batch over the sum of their weights.
    pub factor: f64,
}

/// The target of one row.
struct Target<'a> {
    class: usize,
    /// The other sample's class and its share.
    other: (usize, f64),
    weights: &'a [f32],
    smoothing: f64,
    factor: f64,
}

impl<'a> ShapedClasses<'a> {
    /// The same of some of the rows.
    pub(super) fn rows(&self, rows: std::ops::Range<usize>) -> Self {
        Self {
            classes: &self.classes[rows.clone()],
            others: self.others.get(rows.clone()).unwrap_or_default(),
            samples: self.samples.get(rows).unwrap_or_default(),
            ..*self
        }
    }

    /// What a sample of a class counts.
    pub fn weight(weights: &[f32], class: u32) -> f64 {
        f64::from(weights.get(class as usize).copied().unwrap_or(1.0))
    }

    /// The class of every row, and how much the row counts: of classes that are neither smoothed nor mixed.
    pub(super) fn own_classes(self) -> impl Iterator<Item = (u32, f64)> {
        let samples = self.samples.iter().map(|&weight| f64::from(weight));
        let samples = samples.chain(std::iter::repeat(1.0));
        self.classes.iter().zip(samples).map(move |(&class, own)| {
            let weight = Self::weight(self.weights, class);
            (class, self.factor * own * weight)
        })
    }

    fn targets(self) -> impl Iterator<Item = Target<'a>> {
        let others = self.others.iter();
        let others = others.map(|&(class, share)| (class as usize, f64::from(share)));
        let others = others.chain(std::iter::repeat((0, 0.0)));
        let samples = self.samples.iter().map(|&weight| f64::from(weight));
        let samples = samples.chain(std::iter::repeat(1.0));
        let rows = self.classes.iter().zip(others).zip(samples);
        rows.map(move |((&class, other), weight)| Target {
            class: class as usize,
            other,
            weights: self.weights,
            smoothing: f64::from(self.smoothing),
            factor: self.factor * weight,
        })
    }
}

impl Target<'_> {
    /// How much of the target a class is, times its weight.
    fn share(&self, class: usize, classes: usize) -> f64 {
        let (other, share) = self.other;
        let mut own = 0.0;
        if class == self.class {
            own += 1.0 - share;
        }
        if class == other {
            own += share;
        }
        let share = own * (1.0 - self.smoothing) + self.smoothing / classes as f64;
        share * ShapedClasses::weight(self.weights, class as u32)
    }

    fn loss(&self, softmax: &Softmax, scores: &[f32]) -> LossSum {
        let mut loss = 0.0;
        for (class, &score) in scores.iter().enumerate() {
            let share = self.share(class, scores.len());
            if share != 0.0 {
                loss += share * softmax.loss(score);
            }
        }
        let likeliest = match self.other {
            (other, share) if share > 0.5 => other,
            _ => self.class,
        };
        LossSum {
            loss: loss * self.factor,
            correct: u64::from(softmax.best == likeliest),
            rows: 1,
        }
    }
}

/// What one row comes to.
pub(super) fn row(scores: &[f32], target: ShapedClasses<'_>) -> LossSum {
    let softmax = Softmax::of(scores);
    let mut sum = LossSum::default();
    for target in target.targets() {
        sum += target.loss(&softmax, scores);
    }
    sum
}

/// Sums the rows' losses and overwrites their scores with the gradient of the loss, times `scale`.
pub(super) fn gradient<'a>(
    rows: impl Iterator<Item = &'a mut [f32]>,
    targets: ShapedClasses<'_>,
    scale: f64,
) -> LossSum {
    let mut sum = LossSum::default();
    for (row, target) in rows.zip(targets.targets()) {
        let softmax = Softmax::of(row);
        sum += target.loss(&softmax, row);
        let classes = row.len();
        let whole: f64 = (0..classes).map(|class| target.share(class, classes)).sum();
        for (class, x) in row.iter_mut().enumerate() {
            let slope = softmax.probability(*x) * whole - target.share(class, classes);
            *x = (slope * target.factor * scale) as f32;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::{Loss, Targets, tests::check};
    use super::*;

    const SCORES: [f32; 6] = [0.3, -1.2, 2.0, 0.1, 0.0, 5.0];
    const PLAIN: ShapedClasses<'_> = ShapedClasses {
        classes: &[2, 1],
        others: &[],
        weights: &[],
        samples: &[],
        smoothing: 0.0,
        factor: 1.0,
    };

    /// `-sum(weight * share * ln p)` of rows of three classes.
    fn definition(x: &[f64], shares: [[f64; 3]; 2], weights: [f64; 3], factor: f64) -> f64 {
        let row = |(row, shares): (&[f64], [f64; 3])| {
            let whole = row.iter().map(|x| x.exp()).sum::<f64>().ln();
            let each = (0..3).map(|c| weights[c] * shares[c] * (whole - row[c]));
            each.sum::<f64>() * factor
        };
        x.chunks(3).zip(shares).map(row).sum()
    }

    #[test]
    fn value_and_gradient_are_those_of_the_definition() {
        let (third, half) = (0.25 / 3.0, [0.5, 0.0, 0.5]);
        let cases: [(ShapedClasses<'_>, [[f64; 3]; 2], [f64; 3]); 4] = [
            (PLAIN, [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]], [1.0; 3]),
            (
                ShapedClasses {
                    smoothing: 0.25,
                    ..PLAIN
                },
                [[third, third, 0.75 + third], [third, 0.75 + third, third]],
                [1.0; 3],
            ),
            (
                ShapedClasses {
                    weights: &[1.0, 0.25, 4.0],
                    factor: 2.0 / 4.25,
                    ..PLAIN
                },
                [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]],
                [1.0, 0.25, 4.0],
            ),
            (
                ShapedClasses {
                    others: &[(0, 0.5), (1, 0.25)],
                    // A class beyond the weights counts 1.
                    weights: &[0.5],
                    ..PLAIN
                },
                [half, [0.0, 1.0, 0.0]],
                [0.5, 1.0, 1.0],
            ),
        ];
        for (targets, shares, weights) in cases {
            check(Loss::CrossEntropy, SCORES, Targets::Shaped(targets), |x| {
                definition(x, shares, weights, targets.factor)
            });
        }
    }

    #[test]
    fn rows_count_by_their_own_weights_too() {
        let samples = [3.0, 0.5];
        let targets = ShapedClasses {
            weights: &[1.0, 0.25, 4.0],
            samples: &samples,
            factor: 2.0 / (12.0 + 0.125),
            ..PLAIN
        };
        check(Loss::CrossEntropy, SCORES, Targets::Shaped(targets), |x| {
            let row = |at: usize, class: usize| {
                let row = &x[at * 3..][..3];
                row.iter().map(|x| x.exp()).sum::<f64>().ln() - row[class]
            };
            (3.0 * 4.0 * row(0, 2) + 0.5 * 0.25 * row(1, 1)) * targets.factor
        });
    }

    /// A batch, and what PyTorch's `cross_entropy` made of it.
    #[derive(serde::Deserialize)]
    struct Case {
        outputs: usize,
        scores: Vec<f32>,
        labels: Vec<u32>,
        weights: Vec<f32>,
        smoothing: f32,
        loss: f64,
        gradient: Vec<f64>,
    }

    #[derive(serde::Deserialize)]
    struct Reference {
        losses: Vec<Case>,
    }

    #[test]
    fn mean_and_gradient_of_a_batch_are_pytorchs_in_one_lane_and_in_two() {
        let text = include_str!("../../tests/it/reference/reference.json");
        let reference: Reference = serde_json::from_str(text).unwrap();
        for case in reference.losses {
            let weight = |&label: &u32| ShapedClasses::weight(&case.weights, label);
            let batch = case.labels.len();
            let whole = ShapedClasses {
                classes: &case.labels,
                others: &[],
                weights: &case.weights,
                samples: &[],
                smoothing: case.smoothing,
                factor: batch as f64 / case.labels.iter().map(weight).sum::<f64>(),
            };
            for cut in [batch, 3] {
                let mut gradient = case.scores.clone();
                let (first, second) = gradient.split_at_mut(cut * case.outputs);
                let mut sum = LossSum::default();
                for (scores, rows) in [(first, 0..cut), (second, cut..batch)] {
                    let targets = Targets::Shaped(whole.rows(rows));
                    let scale = 1.0 / batch as f64;
                    sum += Loss::CrossEntropy.gradient(scores, case.outputs, targets, scale);
                }
                assert!(
                    (sum.loss / batch as f64 - case.loss).abs() < 1e-6,
                    "{}",
                    case.loss
                );
                for (ours, theirs) in gradient.iter().zip(&case.gradient) {
                    assert!((f64::from(*ours) - theirs).abs() < 1e-6, "{ours} {theirs}");
                }
            }
        }
    }

    #[test]
    fn a_row_is_right_if_the_larger_part_of_it_is_predicted() {
        let right = |share| {
            let targets = ShapedClasses {
                classes: &[0],
                others: &[(2, share)],
                ..PLAIN
            };
            row(&SCORES[..3], targets).correct
        };
        assert_eq!((right(0.4), right(0.6)), (0, 1));
    }

    #[test]
    fn a_nan_shows() {
        let targets = ShapedClasses {
            classes: &[0],
            ..PLAIN
        };
        assert!(row(&[f32::NAN, 0.0], targets).loss.is_nan());
    }
}
