//! What a classifier came to on a set.

use crate::{ClassScores, Confusion, Curves, Mistake, Scores};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The numbers that say how good a classifier is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClassSummary {
    /// Samples of classes that the model knows: what all numbers here are over.
    pub samples: u64,
    /// Mean cross-entropy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// The share of samples whose class was predicted. Micro-averaged precision, recall and F1 are the
    /// same number.
    pub accuracy: f64,
    /// Of two classes, how likely a sample of the positive one has a higher probability of it than one of the other: the
    /// area under the ROC curve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auc: Option<f64>,
    /// Of two classes, the mean precision over all samples of the positive one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average_precision: Option<f64>,
    /// Of two classes, how well the positive one is told from the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positive: Option<Scores>,
    /// The share of samples whose class is among the five most probable.
    pub top5: f64,
    /// The mean over the classes that occur, all alike.
    #[serde(rename = "macro")]
    pub macro_average: Scores,
    /// The mean over the classes, each as heavy as it has samples.
    #[serde(rename = "weighted")]
    pub weighted_average: Scores,
    /// Samples of classes that the model does not know. They are in no other number.
    pub unseen_samples: u64,
}

/// Everything that is known about how a classifier did on a set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Classification {
    /// What it was measured on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// The numbers that say how good it is.
    #[serde(flatten)]
    pub summary: ClassSummary,
    /// The metrics of the job\'s own, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
    /// Of two classes, the positive one: that which is looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positive_class: Option<String>,
    /// The probability from which on the positive class was predicted; absent where it was the more probable class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Each class by itself, in the order of the model's classes.
    pub classes: Vec<ClassScores>,
    /// A row a class, in the same order: what its samples were taken for.
    pub confusion: Confusion,
    /// Of two classes, the curves behind the decisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curves: Option<Curves>,
    /// Classes that the model does not know, by name.
    pub unseen: Vec<Unseen>,
    /// The wrong predictions that the model was surest of, surest first.
    pub mistakes: Vec<Mistake>,
}

/// A class that the model does not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unseen {
    /// Its name.
    pub class: String,
    /// How many samples are of it.
    pub count: u64,
}
