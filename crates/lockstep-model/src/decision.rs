//! How a model of two classes decides: which class is looked for, and from which probability on it is predicted.
//!
//! What is minimised does not depend on it, so neither do the weights: only what is measured and what is predicted does.

use crate::{JobMisfit, Prediction};
use lockstep_data::{Dataset, TargetKind};
use lockstep_measure::{ThresholdBy, best_threshold};
use lockstep_resolve::{DecisionRules, Threshold};

/// How a model of two classes decides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// The number of the class that is looked for.
    pub positive: usize,
    /// The probability from which on it is predicted; without, the more probable class is.
    pub threshold: Option<f64>,
}

impl Decision {
    /// How a model decides that is trained on these samples of a set; none unless it tells two classes apart.
    ///
    /// # Errors
    /// When the rules are not for this set, or a threshold is to be chosen and there is no validation data.
    pub fn of(
        rules: &DecisionRules,
        (set, samples): (&Dataset, &[u32]),
        is_validated: bool,
    ) -> Result<Option<Self>, JobMisfit> {
        let misfit = |key: &str, reason| {
            let key = key.to_owned();
            Err(JobMisfit { key, reason })
        };
        if set.target_kind() != TargetKind::Classes || set.classes() != 2 {
            let found = match set.target_kind() {
                TargetKind::Classes => format!("{} classes", set.classes()),
                kind => kind.to_string(),
            };
            let reason = format!(
                "it is for two classes, and {} has {found}; leave it out",
                set.name()
            );
            return match rules {
                DecisionRules {
                    positive: Some(_), ..
                } => misfit("train.positive", reason),
                DecisionRules {
                    threshold: Some(_), ..
                } => misfit("train.threshold", reason),
                _ => Ok(None),
            };
        }
        let names = set.class_names();
        let positive = match &rules.positive {
            None => {
                let [first, second] = counts(set, samples);
                usize::from(second <= first)
            }
            Some(name) => match names.iter().position(|class| class == name) {
                Some(class) => class,
                None => {
                    let (set, names) = (set.name(), names.join("` and `"));
                    let reason =
                        format!("`{name}` is no class of {set}; its classes are `{names}`");
                    return misfit("train.positive", reason);
                }
            },
        };
        let threshold = match rules.threshold {
            None => None,
            Some(Threshold::At(probability)) => Some(probability),
            Some(Threshold::Best(_)) if is_validated => None,
            Some(Threshold::Best(_)) => {
                let reason = "it is chosen on validation data, and there is none; add `val_split = 0.1` or `val` to \
                              [data], or give the probability itself";
                return misfit("train.threshold", reason.to_owned());
            }
        };
        Ok(Some(Self {
            positive,
            threshold,
        }))
    }

    /// How a model of these classes decides whose file says this; none if it says nothing.
    pub fn named(
        classes: &[String],
        positive: Option<&str>,
        threshold: Option<f64>,
    ) -> Option<Self> {
        let positive = classes
            .iter()
            .position(|class| Some(class.as_str()) == positive)?;
        Some(Self {
            positive,
            threshold,
        })
    }

    /// Says which class is the positive one, and why.
    pub fn note(self, rules: &DecisionRules, (set, samples): (&Dataset, &[u32])) -> String {
        let name = &set.class_names()[self.positive];
        let counts = counts(set, samples);
        let (own, all) = (counts[self.positive], samples.len());
        let why = match rules.positive {
            Some(_) => "as train.positive says",
            None if counts[0] == counts[1] => "the second of two that are equally frequent",
            None => "the rarer of the two",
        };
        let other = match rules.positive {
            Some(_) => "",
            None => "; train.positive names another",
        };
        format!("the positive class is `{name}`, {why}: {own} of {all} training samples{other}")
    }

    /// The same with the threshold that is best for what was said of samples, each of which is of a class.
    pub fn with_best_threshold<'a>(
        self,
        by: ThresholdBy,
        said: impl Iterator<Item = (&'a Prediction, u32)>,
    ) -> Self {
        let samples = said.map(|(said, label)| (self.score(said), label as usize == self.positive));
        Self {
            threshold: best_threshold(by, samples),
            ..self
        }
    }

    /// How probable the positive class is.
    fn score(self, said: &Prediction) -> f32 {
        match said.class as usize == self.positive {
            true => said.probability,
            false => 1.0 - said.probability,
        }
    }

    /// What is predicted, where the more probable class was said.
    pub(crate) fn decide(self, said: Prediction) -> Prediction {
        let Some(threshold) = self.threshold else {
            return said;
        };
        let is_positive = f64::from(self.score(&said)) >= threshold;
        if is_positive == (said.class as usize == self.positive) {
            return said;
        }
        Prediction {
            class: 1 - said.class,
            probability: 1.0 - said.probability,
            ..said
        }
    }
}

/// Samples of each of two classes.
fn counts(set: &Dataset, samples: &[u32]) -> [usize; 2] {
    let is_second = |&&sample: &&u32| set.labels()[sample as usize] == 1;
    let second = samples.iter().filter(is_second).count();
    [samples.len() - second, second]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(class: u32, probability: f32) -> Prediction {
        Prediction {
            class,
            probability,
            in_top5: true,
        }
    }

    #[test]
    fn the_positive_class_is_predicted_from_the_threshold_on() {
        let decide = |positive, threshold, of| {
            let decision = Decision {
                positive,
                threshold,
            };
            let Prediction {
                class, probability, ..
            } = decision.decide(of);
            (class, probability)
        };
        // The other class is more probable, and the positive one probable enough.
        assert_eq!(decide(1, Some(0.25), said(0, 0.75)), (1, 0.25));
        assert_eq!(decide(0, Some(0.25), said(1, 0.75)), (0, 0.25));
        assert_eq!(decide(1, Some(0.251), said(0, 0.75)), (0, 0.75));
        assert_eq!(decide(1, Some(0.9), said(1, 0.75)), (0, 0.25));
        assert_eq!(decide(1, None, said(0, 0.75)), (0, 0.75));
    }

    #[test]
    fn the_best_threshold_of_either_positive_class_parts_them() {
        // The first class is rare and never the more probable one.
        let all = [
            (said(1, 0.9), 1),
            (said(1, 0.8), 1),
            (said(1, 0.7), 0),
            (said(1, 0.6), 0),
        ];
        for (positive, expected) in [(0, 0.25), (1, 0.75)] {
            let decision = Decision {
                positive,
                threshold: None,
            };
            let rows = all.iter().map(|(said, label)| (said, *label));
            let chosen = decision.with_best_threshold(ThresholdBy::F1, rows);
            assert!(
                (chosen.threshold.unwrap() - expected).abs() < 1e-6,
                "{chosen:?}"
            );
            for (said, label) in all {
                assert_eq!(chosen.decide(said).class, label);
            }
        }
    }
}
