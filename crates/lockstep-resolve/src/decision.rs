//! Which of two classes is looked for, when it is predicted, and how much each class counts.

use lockstep_job::{JobDecision, JobThreshold, ThresholdRule, WeightRule};
use lockstep_measure::ThresholdBy;
use serde::{Deserialize, Serialize};

/// What a job says of two classes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DecisionRules {
    /// The class that is looked for; if absent, the one with fewer training samples.
    pub positive: Option<String>,
    /// When it is predicted; if absent, where it is the more probable one.
    pub threshold: Option<Threshold>,
}

/// From which probability on the positive class is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Threshold {
    /// From this one.
    At(f64),
    /// From the one that is best on validation data.
    Best(ThresholdBy),
}

impl DecisionRules {
    pub(crate) fn of(job: &JobDecision) -> Self {
        Self {
            positive: job.positive.as_ref().map(ToString::to_string),
            threshold: job.threshold.map(|threshold| match threshold {
                JobThreshold::At(probability) => Threshold::At(probability),
                JobThreshold::By(ThresholdRule::F1) => Threshold::Best(ThresholdBy::F1),
                JobThreshold::By(ThresholdRule::BalancedAccuracy) => {
                    Threshold::Best(ThresholdBy::BalancedAccuracy)
                }
            }),
        }
    }
}

/// How much each class counts in what is minimised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ClassWeights {
    /// As if all had as many training samples.
    Balanced,
    /// A number for every class, in the order of the classes.
    Each(Vec<f64>),
}

impl ClassWeights {
    pub(crate) fn of(job: &lockstep_job::ClassWeights) -> Self {
        match job {
            lockstep_job::ClassWeights::Rule(WeightRule::Balanced) => Self::Balanced,
            lockstep_job::ClassWeights::Each(weights) => Self::Each(weights.clone()),
        }
    }

    /// The weight of each of so many classes, where the training samples are of these.
    pub fn by_class(&self, labels: impl Iterator<Item = u32>, classes: usize) -> Vec<f32> {
        match self {
            Self::Each(weights) => weights.iter().map(|&weight| weight as f32).collect(),
            Self::Balanced => balanced(labels, classes),
        }
    }

    /// Why these are not weights of the classes of these names, if so.
    pub fn misfit(&self, classes: &[String]) -> Option<String> {
        let Self::Each(weights) = self else {
            return None;
        };
        (weights.len() != classes.len()).then(|| {
            format!(
                "it has {} numbers, but the data has {} classes: {}; give one for each, or \"balanced\"",
                weights.len(),
                classes.len(),
                first_of(classes)
            )
        })
    }
}

/// Weights that let every class that occurs count as much as any other, with a mean of 1 over the samples: what
/// scikit-learn calls balanced.
fn balanced(labels: impl Iterator<Item = u32>, classes: usize) -> Vec<f32> {
    let mut counts = vec![0u64; classes];
    for label in labels {
        counts[label as usize] += 1;
    }
    let samples: u64 = counts.iter().sum();
    let present = counts.iter().filter(|&&count| count > 0).count();
    let weight = |count| match count {
        0 => 1.0,
        count => (samples as f64 / (present as f64 * count as f64)) as f32,
    };
    counts.into_iter().map(weight).collect()
}

/// The first of some names.
fn first_of(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(String::as_str).collect();
    let more = match names.len() > SHOWN {
        true => ", …",
        false => "",
    };
    shown.join(", ") + more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balanced_weights_are_those_of_scikit_learn() {
        // compute_class_weight("balanced", classes=[0, 1, 3], y=[0, 0, 0, 1, 3, 3])
        let labels = [0, 0, 0, 1, 3, 3].into_iter();
        assert_eq!(balanced(labels, 4), [2.0 / 3.0, 2.0, 1.0, 1.0]);
    }
}
