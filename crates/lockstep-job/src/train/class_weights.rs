//! `train.class_weights`: how much each class counts, by numbers or as rare as it is.

use crate::field::{Field, Rule};
use crate::keys::{Check, FromField, NotEmpty};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much each class counts in the loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ClassWeights {
    /// By a rule.
    Rule(WeightRule),
    /// A number for every class, in the order of the classes.
    Each(Vec<f64>),
}

/// What weights follow from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WeightRule {
    /// Every class counts as much as any other, however many training samples it has.
    #[serde(rename = "balanced")]
    Balanced,
}

impl FromField for ClassWeights {
    fn from_field(field: &Field<'_>) -> Option<Self> {
        if field.is_text() {
            field.one_of(&["balanced"])?;
            return Some(Self::Rule(WeightRule::Balanced));
        }
        if !field.is_array() {
            return field.reject(
                "must be \"balanced\" or an array of numbers",
                "for example \"balanced\", or [1.0, 2.5] of two classes",
            );
        }
        let each = NotEmpty(Rule::POSITIVE, "one number for every class");
        each.read(field).map(Self::Each)
    }
}
