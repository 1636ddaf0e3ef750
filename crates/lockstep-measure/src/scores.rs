//! Precision, recall and F1: of a class, and their averages.

use crate::Confusion;
use serde::{Deserialize, Serialize};

/// How well a class is told from the others, each number from 0 to 1. Where one would be 0 / 0, it is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// The share of the samples taken for the class that are of it.
    pub precision: f64,
    /// The share of the samples of the class that were taken for it.
    pub recall: f64,
    /// The harmonic mean of both.
    pub f1: f64,
}

/// The scores of one class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassScores {
    /// The class.
    pub class: String,
    /// How well it is told from the others.
    #[serde(flatten)]
    pub scores: Scores,
    /// Samples of it.
    pub support: u64,
}

impl Scores {
    pub(crate) fn of_class(confusion: &Confusion, class: usize) -> Self {
        Self::of_counts(
            confusion.count(class, class),
            confusion.support(class),
            confusion.predicted(class),
        )
    }

    /// Of something that was there `support` times, was predicted `predicted` times, and both `right` times.
    pub(crate) fn of_counts(right: u64, support: u64, predicted: u64) -> Self {
        Self {
            precision: ratio(right, predicted),
            recall: ratio(right, support),
            f1: ratio(2 * right, support + predicted),
        }
    }

    /// The mean of the classes that occur, all alike.
    pub(crate) fn macro_average(confusion: &Confusion) -> Self {
        let occurs = |class: &usize| confusion.support(*class) + confusion.predicted(*class) > 0;
        let classes = (0..confusion.classes()).filter(occurs);
        Self::mean(classes.map(|class| (Self::of_class(confusion, class), 1)))
    }

    /// The mean of the classes, each as heavy as it has samples.
    pub(crate) fn weighted_average(confusion: &Confusion) -> Self {
        let classes = 0..confusion.classes();
        let weighted = |class| (Self::of_class(confusion, class), confusion.support(class));
        Self::mean(classes.map(weighted))
    }

    /// The mean of scores, each as heavy as the number beside it.
    pub(crate) fn mean(weighted: impl Iterator<Item = (Self, u64)>) -> Self {
        let (mut sum, mut total) = (Self::default(), 0.0);
        for (scores, weight) in weighted {
            let weight = weight as f64;
            sum.precision += scores.precision * weight;
            sum.recall += scores.recall * weight;
            sum.f1 += scores.f1 * weight;
            total += weight;
        }
        if total == 0.0 {
            return Self::default();
        }
        Self {
            precision: sum.precision / total,
            recall: sum.recall / total,
            f1: sum.f1 / total,
        }
    }
}

/// A share of counts; none of nothing is 0.
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        _ => part as f64 / whole as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn confusion(rows: Vec<Vec<u64>>) -> Confusion {
        rows.try_into().unwrap()
    }

    #[test]
    fn nothing_of_nothing_is_zero() {
        let empty = confusion(vec![vec![0, 0], vec![0, 0]]);
        assert_eq!(Scores::of_class(&empty, 0), Scores::default());
        assert_eq!(Scores::macro_average(&empty), Scores::default());
        assert_eq!(Scores::weighted_average(&empty), Scores::default());
    }

    #[test]
    fn a_class_that_does_not_occur_does_not_pull_the_macro_average_down() {
        let absent = confusion(vec![vec![3, 0, 0], vec![0, 0, 0], vec![0, 0, 2]]);
        assert_eq!(Scores::macro_average(&absent).f1, 1.0);
        let predicted = confusion(vec![vec![3, 1, 0], vec![0, 0, 0], vec![0, 0, 2]]);
        assert!(Scores::macro_average(&predicted).f1 < 0.7);
    }

    proptest! {
        #[test]
        fn scores_lie_between_nothing_and_all(
            rows in (1usize..6).prop_flat_map(|n| {
                prop::collection::vec(prop::collection::vec(0u64..50, n), n)
            }),
        ) {
            let confusion = confusion(rows);
            let averages = [
                Scores::macro_average(&confusion),
                Scores::weighted_average(&confusion),
            ];
            let classes = (0..confusion.classes()).map(|class| Scores::of_class(&confusion, class));
            for scores in classes.chain(averages) {
                for x in [scores.precision, scores.recall, scores.f1] {
                    prop_assert!((0.0..=1.0 + 1e-12).contains(&x), "{scores:?}");
                }
            }
        }

        /// Each sample is once right or wrong: recall, weighted by support, is the accuracy.
        #[test]
        fn weighted_recall_is_the_accuracy(
            rows in prop::collection::vec(prop::collection::vec(0u64..50, 4), 4),
        ) {
            let confusion = confusion(rows);
            let accuracy = ratio(confusion.right(), confusion.total());
            let recall = Scores::weighted_average(&confusion).recall;
            prop_assert!((accuracy - recall).abs() < 1e-12);
        }
    }
}
