//! What epochs and rounds are compared by.

use crate::Best;
use serde::{Deserialize, Serialize};

/// Declares the measures: what each is called, and what of it is the best.
macro_rules! measures {
    ($($(#[doc = $doc:literal])* $word:literal $variant:ident)*) => {
        /// A measure on validation data, by which the best epoch or round is chosen: any number that an evaluation has.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Measure { $(
            $(#[doc = $doc])*
            #[serde(rename = $word)]
            $variant,
        )* }

        impl Measure {
            /// All that there are.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// What it is called among metrics.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            /// What of it is the best, in a sentence.
            pub fn sentence(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($doc),*).trim_ascii(),)*
                }
            }
        }
    };
}

measures! {
    /// The lowest mean loss is the best.
    "loss" Loss
    /// The highest share of samples classified rightly, or of labels told rightly, is the best.
    "accuracy" Accuracy
    /// The highest F1 is the best: the mean over the classes or labels, all alike.
    "f1" F1
    /// The highest precision is the best: the mean over the classes or labels, all alike.
    "precision" Precision
    /// The highest recall is the best: the mean over the classes or labels, all alike.
    "recall" Recall
    /// The highest share of samples whose class is among the five most probable is the best.
    "top5" Top5
    /// Of two classes, the largest area under the ROC curve is the best.
    "auc" Auc
    /// Of two classes, the highest mean precision over all samples of the positive one is the best.
    "average_precision" AveragePrecision
    /// Of two classes, the highest F1 of the positive one is the best.
    "positive.f1" PositiveF1
    /// Of two classes, the highest precision of the positive one is the best.
    "positive.precision" PositivePrecision
    /// Of two classes, the highest recall of the positive one is the best.
    "positive.recall" PositiveRecall
    /// The highest F1 is the best: the mean over the classes, each as heavy as it has samples.
    "weighted.f1" WeightedF1
    /// The highest precision is the best: the mean over the classes, each as heavy as it has samples.
    "weighted.precision" WeightedPrecision
    /// The highest recall is the best: the mean over the classes, each as heavy as it has samples.
    "weighted.recall" WeightedRecall
    /// The highest share of samples all of whose labels were told rightly is the best.
    "exact" Exact
    /// The highest F1 over all labels of all samples is the best.
    "micro.f1" MicroF1
    /// The highest precision over all labels of all samples is the best.
    "micro.precision" MicroPrecision
    /// The highest recall over all labels of all samples is the best.
    "micro.recall" MicroRecall
    /// The lowest mean squared error is the best.
    "mse" Mse
    /// The lowest mean absolute error is the best.
    "mae" Mae
    /// The highest coefficient of determination is the best.
    "r2" R2
    /// Of a ranking, the highest normalised discounted gain is the best.
    "ndcg" Ndcg
    /// Of a ranking, the highest normalised discounted gain of the first ten rows is the best.
    "ndcg10" Ndcg10
    /// Of a ranking, the highest mean precision at the ranks of relevant rows is the best.
    "map" Map
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measured {
    /// Predictions of one of so many classes.
    Classes(usize),
    /// Predictions of labels, of which a sample may have several.
    Labels,
    /// Predictions of numbers.
    Numbers,
    /// Rows that were put in order.
    Rankings,
}

impl Measure {
    /// All measures of such predictions: every number that an evaluation of them has.
    pub fn all_of(measured: Measured) -> &'static [Measure] {
        use Measure::*;
        match measured {
            Measured::Classes(2) => &[
                Loss,
                Accuracy,
                F1,
                Auc,
                Precision,
                Recall,
                AveragePrecision,
                PositiveF1,
                PositivePrecision,
                PositiveRecall,
                WeightedF1,
                WeightedPrecision,
                WeightedRecall,
            ],
            Measured::Classes(_) => &[
                Loss,
                Accuracy,
                F1,
                Top5,
                Precision,
                Recall,
                WeightedF1,
                WeightedPrecision,
                WeightedRecall,
            ],
            Measured::Labels => &[
                Loss,
                Accuracy,
                F1,
                Exact,
                Precision,
                Recall,
                MicroF1,
                MicroPrecision,
                MicroRecall,
            ],
            Measured::Numbers => &[Loss, R2, Mae, Mse],
            Measured::Rankings => &[Loss, Ndcg, Ndcg10, Map],
        }
    }

    /// Where the numbers of an evaluation have it.
    pub(crate) fn pointer(self) -> String {
        match self {
            Measure::F1 | Measure::Precision | Measure::Recall => format!("/macro/{}", self.word()),
            _ => format!("/{}", self.word().replace('.', "/")),
        }
    }

    /// What of it is the best.
    pub fn best(self) -> Best {
        match self {
            Measure::Loss | Measure::Mse | Measure::Mae => Best::Lowest,
            _ => Best::Highest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Evaluation, LabelTally, Outcome, Ranking, RegressionTally, Tally};

    /// The names of all numbers that are scores, the parts of a name with a dot between them.
    fn reported(summary: &serde_json::Value, within: &str, names: &mut Vec<String>) {
        for (name, value) in summary.as_object().unwrap() {
            let name = format!("{within}{name}");
            match value.is_object() {
                true => reported(value, &format!("{name}."), names),
                false => names.push(name),
            }
        }
    }

    #[test]
    fn every_number_that_an_evaluation_reports_can_be_chosen_by() {
        let classes = |count: usize| {
            let names: Vec<String> = (0..count).map(|class| class.to_string()).collect();
            let mut tally = Tally::new(&names);
            for row in 0..count {
                tally.add(&Outcome {
                    row: row as u64,
                    actual: row,
                    predicted: 0,
                    probability: 0.75,
                    in_top5: true,
                });
            }
            Evaluation::Classes(tally.finish(0, |_| None))
        };
        let mut labels = LabelTally::new(&["red".to_owned()]);
        labels.add(&[0.75], &[1.0]);
        let mut numbers = RegressionTally::new(&["x".to_owned()], &[0.0], &[1.0], 8);
        numbers.add(&[1.0], &[2.0]);
        let all = [
            (Measured::Classes(2), classes(2)),
            (Measured::Classes(3), classes(3)),
            (Measured::Labels, Evaluation::Labels(labels.finish())),
            (
                Measured::Numbers,
                Evaluation::Numbers(numbers.finish(|_| None)),
            ),
            (
                Measured::Rankings,
                Evaluation::Ranking(Ranking::of(1, std::iter::empty())),
            ),
        ];
        for (measured, mut evaluation) in all {
            evaluation.set_loss(0.5);
            let summary = evaluation.summary();
            let mut names = Vec::new();
            reported(&serde_json::to_value(summary).unwrap(), "", &mut names);
            let counts = ["samples", "unseen_samples", "groups"];
            names.retain(|name| !counts.contains(&name.as_str()));
            // Of two classes, both are always among the five most probable.
            names.retain(|name| measured != Measured::Classes(2) || name != "top5");
            let mut known: Vec<String> = Vec::new();
            for measure in Measure::all_of(measured) {
                assert!(
                    summary.value(*measure).is_some(),
                    "{measure:?} of {measured:?}"
                );
                known.push(measure.pointer()[1..].replace('/', "."));
            }
            names.sort();
            known.sort();
            assert_eq!(names, known, "{measured:?}");
        }
    }
}
