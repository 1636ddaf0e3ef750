//! `train.positive` and `train.threshold`: which of two classes is looked for, and from which probability on it is
//! predicted.

use crate::field::{Field, Rule};
use crate::keys::{Any, FromField, keys};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

keys! {
    /// Which of two classes is looked for, and when it is predicted.
    pub struct JobDecision: all default {
        /// Of two classes, the positive one: that which is looked for, by its name. Precision, recall, AUC and average
        /// precision are of it, and so is `scale_pos_weight` of trees. If left out, the one with fewer training samples.
        positive: Option<PositiveClass> = optional => Any;
        /// Of two classes, the probability from which on the positive one is predicted, such as 0.3; or `"f1"` or
        /// `"balanced-accuracy"`: the probability by which that is highest on validation data. If left out, the more
        /// probable class is predicted.
        threshold: Option<JobThreshold> = optional => Any;
    }
}

/// A class by its name. A whole number and a truth are names too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PositiveClass {
    /// As it is.
    Name(String),
    /// Of classes that are whole numbers.
    Number(i64),
    /// Of classes that are `true` and `false`.
    Truth(bool),
}

impl fmt::Display for PositiveClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Number(number) => write!(f, "{number}"),
            Self::Truth(truth) => write!(f, "{truth}"),
        }
    }
}

impl FromField for PositiveClass {
    fn from_field(field: &Field<'_>) -> Option<Self> {
        let value = field.json()?;
        let class = match &value {
            serde_json::Value::String(name) => Some(Self::Name(name.clone())),
            serde_json::Value::Bool(truth) => Some(Self::Truth(*truth)),
            value => value.as_i64().map(Self::Number),
        };
        class.or_else(|| {
            field.reject(
                format!("must be the name of a class, found {value}"),
                "for example \"fraud\", or 1",
            )
        })
    }
}

/// From which probability on the positive class is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum JobThreshold {
    /// From this one.
    At(f64),
    /// From the one that is best on validation data.
    By(ThresholdRule),
}

/// What a threshold is chosen by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ThresholdRule {
    /// The F1 of the positive class is highest.
    #[serde(rename = "f1")]
    F1,
    /// The mean of both classes' recalls is highest.
    #[serde(rename = "balanced-accuracy")]
    BalancedAccuracy,
}

impl FromField for JobThreshold {
    fn from_field(field: &Field<'_>) -> Option<Self> {
        if field.is_text() {
            return match field.one_of(&["f1", "balanced-accuracy"])? {
                "f1" => Some(Self::By(ThresholdRule::F1)),
                _ => Some(Self::By(ThresholdRule::BalancedAccuracy)),
            };
        }
        let share = field.number(&Rule::BELOW_ONE)?;
        match share > 0.0 {
            true => Some(Self::At(share)),
            false => field.reject(
                "must be greater than 0",
                "for example 0.3, or \"f1\" to choose it on validation data",
            ),
        }
    }
}
