//! `[data]`: what to learn from.

mod augment;
mod normalise;
mod reference;

pub use augment::Augment;
pub use normalise::Normalise;
pub use reference::{DataRef, KNOWN_DATASETS, Split};

use crate::field::Rule;
use crate::section::Section;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to learn from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Data {
    /// The training set.
    pub train: DataRef,
    /// The samples that the best epoch is chosen on.
    #[serde(flatten)]
    #[schemars(with = "ValidationKeys")]
    pub validation: Validation,
    /// The test set: every epoch is measured on it, nothing is ever chosen on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<DataRef>,
    /// Normalisation of the input: `(x - mean) / std`, with `x` from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub normalise: Option<Normalise>,
    /// How training images are varied from step to step; evaluation sees them as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub augment: Option<Augment>,
}

/// The samples that the best epoch is chosen on: never those of the test set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Validation {
    /// This share of the training set, set aside; 0 means that there is no validation.
    #[serde(rename = "val_split")]
    Split(f64),
    /// A set of its own.
    #[serde(rename = "val")]
    Set(DataRef),
}

/// [`Validation`] as the job file's keys, for the schema.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct ValidationKeys {
    /// The validation set, on which the best epoch is chosen. Not together with `val_split`.
    val: Option<DataRef>,
    /// The share of the training set that is set aside for validation, from 0 to less than 1.
    #[serde(default)]
    #[schemars(extend("minimum" = 0, "exclusiveMaximum" = 1))]
    val_split: f64,
}

impl Data {
    pub(crate) fn read(mut section: Section<'_>) -> Option<Data> {
        let train = section
            .need(
                "train",
                "add `train = \"fashion-mnist:train\"` or the path of an IDX file",
            )
            .and_then(|field| DataRef::read(&field));
        let val = section.maybe("val", |field| DataRef::read(&field));
        let val_split = section.or("val_split", 0.0, |field| {
            let share = field.number(Rule::BELOW_ONE)?;
            if share > 0.0 && !matches!(val, Some(None)) {
                return field.reject("cannot be used together with `data.val`", "leave one out");
            }
            Some(share)
        });
        let test = section.maybe("test", |field| DataRef::read(&field));
        let normalise = section.maybe("normalise", |field| Normalise::read(field.section()?));
        let augment = section.maybe("augment", |field| Augment::read(field.section()?));
        section.finish();
        let validation = match val? {
            Some(set) => Validation::Set(set),
            None => Validation::Split(val_split?),
        };
        Some(Data {
            train: train?,
            validation,
            test: test?,
            normalise: normalise?,
            augment: augment?,
        })
    }
}
