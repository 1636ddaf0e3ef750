//! `[data]`: what to learn from.

mod augment;
mod keys;
mod location;
mod normalise;
mod reference;
mod table;
mod transform;

pub use augment::Augment;
pub use location::Location;
pub use normalise::Normalise;
pub use reference::{DataRef, KNOWN_DATASETS, Split};
pub use table::{Columns, Features, Label};
pub use transform::{Filter, Transform};

use crate::Bytes;
use crate::field::Rule;
use crate::keys::{Check, FromField, Table};
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
    /// What becomes of a picture before a network sees it. Of pictures that are embedded, if left out,
    /// what the encoder was trained with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transform: Option<Transform>,
    /// The share of pictures that may be unreadable: they are left out and listed. More fail the job.
    #[serde(default = "max_bad")]
    #[schemars(range(min = 0, max = 1))]
    pub max_bad: f64,
    /// Memory that reading a data set may take in each process, however large the set is.
    #[serde(default = "memory")]
    pub memory: Bytes,
}

fn max_bad() -> f64 {
    0.01
}

fn memory() -> Bytes {
    Bytes(1 << 30)
}

/// Room for a few large pictures, or some rows of a wide table.
const LEAST_MEMORY: Bytes = Bytes(64 << 20);

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
    /// Reads the section; with `embeds`, its sets are pictures that become vectors.
    pub(crate) fn read(mut section: Section<'_>, embeds: bool) -> Option<Data> {
        let train = section
            .need(
                "train",
                "add `train = \"fashion-mnist:train\"` the path of an IDX file, or a folder of pictures",
            )
            .and_then(|field| DataRef::read(&field, embeds));
        let val = section.maybe("val", |field| DataRef::read(&field, embeds));
        let val_split = section.or("val_split", 0.0, |field| {
            let share = field.number(&Rule::BELOW_ONE)?;
            if share > 0.0 && !matches!(val, Some(None)) {
                return field.reject("cannot be used together with `data.val`", "leave one out");
            }
            Some(share)
        });
        let test = section.maybe("test", |field| DataRef::read(&field, embeds));
        let normalise = section.maybe("normalise", |field| {
            if embeds {
                return field.reject(
                    "is for what is trained on, and with [embed] those are vectors",
                    "write `normalise` in [embed] to set the scale of the pictures",
                );
            }
            Normalise::from_field(&field)
        });
        let augment = section.maybe("augment", |field| {
            if embeds {
                return field.reject(
                    "is for pictures that are trained on, and with [embed] vectors are",
                    "leave one out",
                );
            }
            Table(Augment::read_keys).read(&field)
        });
        let transform = section.maybe("transform", |field| {
            Table(Transform::read_keys).read(&field)
        });
        let max_bad = section.or("max_bad", max_bad(), |field| field.number(&Rule::SHARE));
        let memory = section.or("memory", memory(), |field| {
            Bytes::read(&field, LEAST_MEMORY)
        });
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
            transform: transform?,
            max_bad: max_bad?,
            memory: memory?,
        })
    }
}
