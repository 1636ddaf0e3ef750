//! How well labels are told from their absence, where a sample may have any number of them.
//!
//! Everything is computed from counts, so the order of the samples does not matter. The numbers are those of
//! scikit-learn for indicator matrices with `zero_division=0`.

use crate::scores::ratio;
use crate::{ClassScores, Scores};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A label is predicted where its probability is above this.
const HALF: f32 = 0.5;

/// The numbers that say how well labels are predicted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LabelSummary {
    /// Samples: what all numbers here are over.
    pub samples: u64,
    /// Mean binary cross-entropy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// The share of labels, over all samples, that were told rightly from their absence.
    pub accuracy: f64,
    /// The share of samples all of whose labels were.
    pub exact: f64,
    /// Over all labels of all samples, each as heavy as any other.
    pub micro: Scores,
    /// The mean over the labels, all alike.
    #[serde(rename = "macro")]
    pub macro_average: Scores,
}

/// Everything that is known about how well labels are predicted on a set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MultiLabel {
    /// What it was measured on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// The numbers that say how well they are predicted.
    #[serde(flatten)]
    pub summary: LabelSummary,
    /// The metrics of the job\'s own, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
    /// Each label by itself.
    pub labels: Vec<ClassScores>,
}

/// How often a label was there, was predicted, and both.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    right: u64,
    support: u64,
    predicted: u64,
}

/// Counts predicted labels, in any order.
#[derive(Debug, Clone)]
pub struct LabelTally {
    labels: Vec<String>,
    counts: Vec<Counts>,
    samples: u64,
    agreeing: u64,
    exact: u64,
}

impl LabelTally {
    /// For a model that knows these labels.
    pub fn new(labels: &[String]) -> Self {
        Self {
            labels: labels.to_vec(),
            counts: vec![Counts::default(); labels.len()],
            samples: 0,
            agreeing: 0,
            exact: 0,
        }
    }

    /// Counts a sample: how probable each label is, and 1 or 0 for whether it has it.
    pub fn add(&mut self, probabilities: &[f32], actual: &[f32]) {
        let mut exact = true;
        for ((counts, &p), &actual) in self.counts.iter_mut().zip(probabilities).zip(actual) {
            let (said, is) = (p > HALF, actual > HALF);
            counts.right += u64::from(said && is);
            counts.support += u64::from(is);
            counts.predicted += u64::from(said);
            self.agreeing += u64::from(said == is);
            exact &= said == is;
        }
        self.samples += 1;
        self.exact += u64::from(exact);
    }

    /// What it all comes to.
    pub fn finish(self) -> MultiLabel {
        let labels = self.labels.into_iter().zip(&self.counts);
        let labels: Vec<ClassScores> = labels
            .map(|(class, counts)| ClassScores {
                class,
                scores: Scores::of_counts(counts.right, counts.support, counts.predicted),
                support: counts.support,
            })
            .collect();
        let sum = |of: fn(&Counts) -> u64| self.counts.iter().map(of).sum();
        let micro = Scores::of_counts(
            sum(|counts| counts.right),
            sum(|counts| counts.support),
            sum(|counts| counts.predicted),
        );
        let all = self.samples * labels.len() as u64;
        MultiLabel {
            set: None,
            summary: LabelSummary {
                samples: self.samples,
                loss: None,
                accuracy: ratio(self.agreeing, all),
                exact: ratio(self.exact, self.samples),
                micro,
                macro_average: Scores::mean(labels.iter().map(|label| (label.scores, 1))),
            },
            metrics: BTreeMap::new(),
            labels,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_counted_each_and_together() {
        let mut tally = LabelTally::new(&["red", "round", "rare"].map(str::to_owned));
        tally.add(&[0.9, 0.2, 0.1], &[1.0, 0.0, 0.0]);
        tally.add(&[0.9, 0.8, 0.1], &[0.0, 1.0, 0.0]);
        tally.add(&[0.1, 0.5, 0.1], &[1.0, 1.0, 0.0]);
        let found = tally.finish();
        let summary = found.summary;
        assert_eq!(summary.samples, 3);
        assert!((summary.accuracy - 6.0 / 9.0).abs() < 1e-12);
        assert!((summary.exact - 1.0 / 3.0).abs() < 1e-12);
        let red = found.labels[0].scores;
        assert_eq!((red.precision, red.recall, red.f1), (0.5, 0.5, 0.5));
        let round = found.labels[1].scores;
        assert_eq!((round.precision, round.recall), (1.0, 0.5));
        assert_eq!(found.labels[2].scores, Scores::default());
        assert!((summary.micro.precision - 2.0 / 3.0).abs() < 1e-12);
        assert!((summary.micro.recall - 0.5).abs() < 1e-12);
        assert!((summary.macro_average.recall - 1.0 / 3.0).abs() < 1e-12);
        assert!(found.table()[4].is_empty() && found.table().len() == 7);
    }
}
