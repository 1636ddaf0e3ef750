//! What epochs and rounds are compared by.

use serde::{Deserialize, Serialize};

/// A measure on validation data, by which the best epoch or round is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// The lowest mean loss is the best.
    Loss,
    /// The highest share of samples classified rightly, or of labels told rightly, is the best.
    Accuracy,
    /// The highest F1 is the best: the mean over the classes or labels, all alike.
    F1,
    /// The highest share of samples whose class is among the five most probable is the best.
    Top5,
    /// Of two classes, the largest area under the ROC curve is the best.
    Auc,
    /// The lowest mean squared error is the best.
    Mse,
    /// The lowest mean absolute error is the best.
    Mae,
    /// The highest coefficient of determination is the best.
    R2,
    /// Of a ranking, the highest normalised discounted gain is the best.
    Ndcg,
    /// Of a ranking, the highest normalised discounted gain of the first ten rows is the best.
    Ndcg10,
    /// Of a ranking, the highest mean precision at the ranks of relevant rows is the best.
    Map,
}

impl Measure {
    /// What it is called among metrics.
    pub fn word(self) -> &'static str {
        match self {
            Measure::Loss => "loss",
            Measure::Accuracy => "accuracy",
            Measure::F1 => "f1",
            Measure::Top5 => "top5",
            Measure::Auc => "auc",
            Measure::Mse => "mse",
            Measure::Mae => "mae",
            Measure::R2 => "r2",
            Measure::Ndcg => "ndcg",
            Measure::Ndcg10 => "ndcg10",
            Measure::Map => "map",
        }
    }

    /// Whether `value` is better than `other`.
    pub fn is_better(self, value: f64, other: f64) -> bool {
        self.is_better_by(0.0, value, other)
    }

    /// Whether `value` is better than `other` by more than `change`.
    pub fn is_better_by(self, change: f64, value: f64, other: f64) -> bool {
        match self {
            Measure::Loss | Measure::Mse | Measure::Mae => value < other - change,
            _ => value > other + change,
        }
    }
}
