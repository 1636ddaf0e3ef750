//! Metrics of a job's own, and what epochs and rounds are compared by: one of these, or a measure that there is.

use crate::{Formula, Measure};
use serde::{Deserialize, Serialize};

/// A metric of a job's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OwnMetric {
    /// Its name.
    pub name: String,
    /// What it is.
    pub formula: Formula,
    /// What of it is the best, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<Best>,
}

/// Which of two numbers is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Best {
    /// The lower one.
    Lowest,
    /// The higher one.
    Highest,
}

impl Best {
    /// Whether `value` is better than `other` by more than `change`.
    pub(crate) fn is_better_by(self, change: f64, value: f64, other: f64) -> bool {
        match self {
            Self::Lowest => value < other - change,
            Self::Highest => value > other + change,
        }
    }
}

/// What epochs and rounds are compared by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum BestBy {
    /// A measure that there is.
    Measure(Measure),
    /// A metric of the job's own.
    Own(OwnMetric),
}

impl BestBy {
    /// What it is called among metrics.
    pub fn word(&self) -> &str {
        match self {
            Self::Measure(measure) => measure.word(),
            Self::Own(metric) => &metric.name,
        }
    }

    /// Whether `value` is better than `other`.
    pub fn is_better(&self, value: f64, other: f64) -> bool {
        self.is_better_by(0.0, value, other)
    }

    /// Whether `value` is better than `other` by more than `change`.
    pub fn is_better_by(&self, change: f64, value: f64, other: f64) -> bool {
        let best = match self {
            Self::Measure(measure) => measure.best(),
            Self::Own(metric) => metric.best.unwrap_or(Best::Lowest),
        };
        best.is_better_by(change, value, other)
    }
}
