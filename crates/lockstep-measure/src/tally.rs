//! Takes in predictions one by one.

use crate::classification::{ClassSummary, Classification, Unseen};
use crate::mistakes::{Hardest, Mistake};
use crate::ranking::Ranking;
use crate::scores::ratio;
use crate::{ClassScores, Confusion, Scores};
use std::collections::BTreeMap;

/// What was predicted for a sample of a known class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Which sample of the set, counted from 0.
    pub row: u64,
    /// The number of its class.
    pub actual: usize,
    /// The number of the class that was predicted.
    pub predicted: usize,
    /// The probability of that.
    pub probability: f32,
    /// Whether its class is among the five most probable.
    pub in_top5: bool,
}

/// Counts outcomes, in any order.
#[derive(Debug, Clone)]
pub struct Tally {
    classes: Vec<String>,
    confusion: Confusion,
    in_top5: u64,
    unseen: BTreeMap<String, u64>,
    hardest: Hardest,
    /// Of two classes, in which order they are put.
    ranking: Option<Ranking>,
    /// Of two classes, the one that is looked for.
    positive: usize,
    threshold: Option<f64>,
}

impl Tally {
    /// For a model that knows these classes. Of two, the second is the positive one.
    pub fn new(classes: &[String]) -> Self {
        Self {
            classes: classes.to_vec(),
            confusion: Confusion::new(classes.len()),
            in_top5: 0,
            unseen: BTreeMap::new(),
            hardest: Hardest::default(),
            ranking: (classes.len() == 2).then(Ranking::default),
            positive: 1,
            threshold: None,
        }
    }

    /// Of two classes, takes this one as the positive: that which is looked for. It was predicted from the `threshold` on,
    /// or where it was the more probable class.
    pub fn with_positive(self, positive: usize, threshold: Option<f64>) -> Self {
        Self {
            positive,
            threshold,
            ..self
        }
    }

    /// Counts a sample of a class that the model knows.
    ///
    /// # Panics
    /// When there is no such class.
    pub fn add(&mut self, outcome: &Outcome) {
        self.confusion.add(outcome.actual, outcome.predicted);
        self.in_top5 += u64::from(outcome.in_top5);
        if let Some(ranking) = &mut self.ranking {
            let score = match outcome.predicted == self.positive {
                true => outcome.probability,
                false => 1.0 - outcome.probability,
            };
            ranking.add(score, outcome.actual == self.positive);
        }
        if outcome.actual != outcome.predicted {
            self.hardest.show(outcome);
        }
    }

    /// Counts a sample of a class that the model does not know.
    pub fn add_unseen(&mut self, class: &str) {
        match self.unseen.get_mut(class) {
            Some(count) => *count += 1,
            None => drop(self.unseen.insert(class.to_owned(), 1)),
        }
    }

    /// What it all comes to, with the hardest `mistakes`, of which `path` says where each sample is from.
    pub fn finish(self, mistakes: usize, path: impl Fn(u64) -> Option<String>) -> Classification {
        let confusion = self.confusion;
        let classes = self.classes.iter().enumerate();
        let classes = classes.map(|(number, class)| ClassScores {
            class: class.clone(),
            scores: Scores::of_class(&confusion, number),
            support: confusion.support(number),
        });
        let mistakes = self.hardest.take(mistakes).into_iter();
        let mistakes = mistakes.map(|outcome| Mistake {
            row: outcome.row,
            path: path(outcome.row),
            actual: self.classes[outcome.actual].clone(),
            predicted: self.classes[outcome.predicted].clone(),
            probability: outcome.probability,
        });
        let unseen = self.unseen.into_iter();
        let unseen: Vec<Unseen> = unseen
            .map(|(class, count)| Unseen { class, count })
            .collect();
        let positive = (self.classes.len() == 2).then_some(self.positive);
        let (areas, curves) = self.ranking.and_then(Ranking::finish).unzip();
        Classification {
            set: None,
            positive_class: positive.map(|class| self.classes[class].clone()),
            threshold: self.threshold,
            summary: ClassSummary {
                samples: confusion.total(),
                loss: None,
                accuracy: ratio(confusion.right(), confusion.total()),
                auc: areas.map(|areas| areas.auc),
                average_precision: areas.map(|areas| areas.average_precision),
                positive: positive.map(|class| Scores::of_class(&confusion, class)),
                top5: ratio(self.in_top5, confusion.total()),
                macro_average: Scores::macro_average(&confusion),
                weighted_average: Scores::weighted_average(&confusion),
                unseen_samples: unseen.iter().map(|unseen| unseen.count).sum(),
            },
            metrics: BTreeMap::new(),
            classes: classes.collect(),
            curves,
            unseen,
            mistakes: mistakes.collect(),
            confusion,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unseen_classes_are_named_and_counted_and_leave_the_accuracy_alone() {
        let classes = ["a", "b"].map(str::to_owned);
        let mut tally = Tally::new(&classes);
        let outcome = |row, actual, predicted| Outcome {
            row,
            actual,
            predicted,
            probability: 0.75,
            in_top5: true,
        };
        tally.add(&outcome(0, 0, 0));
        tally.add(&outcome(1, 1, 0));
        tally.add_unseen("wolf");
        tally.add_unseen("fox");
        tally.add_unseen("wolf");
        let evaluation = tally.finish(5, |_| None);
        assert_eq!(evaluation.summary.accuracy, 0.5);
        assert_eq!(evaluation.summary.samples, 2);
        assert_eq!(evaluation.summary.unseen_samples, 3);
        let unseen = evaluation.unseen.iter();
        let unseen: Vec<_> = unseen.map(|u| (u.class.as_str(), u.count)).collect();
        assert_eq!(unseen, [("fox", 1), ("wolf", 2)]);
        assert_eq!(evaluation.mistakes.len(), 1);
    }
}
