//! `[data]`: what to learn from.

mod augment;
mod csv;
mod keys;
mod location;
mod normalise;
mod reference;
mod split;
mod table;
mod transform;

pub use augment::JobAugment;
pub use csv::{JobCsv, JobEncoding};
pub use location::Location;
pub use normalise::JobNormalise;
pub use reference::{DataRef, Split};
pub use split::JobSplit;
pub use table::{Features, JobColumnType, JobColumns, Label};
pub use transform::{JobFilter, JobTransform};

use crate::Bytes;
use crate::field::Rule;
use crate::keys::{Any, FromField, Table, WriteKeys, keys};
use crate::section::Section;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::ser::SerializeMap;

keys! {
    /// What to learn from.
    pub struct Data given (embeds: bool) {
        /// The training set.
        train: DataRef = need(
            "add `train = \"fashion-mnist:train\"` the path of an IDX file, or a folder of pictures"
        ) => Any, |field, ()| DataRef::read(field, embeds);
        /// The samples that the best epoch is chosen on.
        #[serde(flatten)]
        validation: Validation as ValidationKeys
            = flat(|section| Validation::read(section, embeds)) => Any;
        /// The share of the training set that is set aside as the test set, from 0 to less than 1. Not together with
        /// `test`. Every epoch is measured on it, nothing is ever chosen on it.
        #[serde(default)]
        test_split: f64 = hidden(0.0) => Rule::BELOW_ONE, |field, share| match &validation {
            Some(Validation::Split(val)) if val + share >= 1.0 => field.reject(
                format!("leaves nothing to train on: `data.val_split` takes {val} of all samples"),
                "make both together less than 1",
            ),
            _ => Some(share),
        };
        /// What decides which rows are set aside; if left out, chance does.
        split: Option<JobSplit> = optional => Table(JobSplit::read_keys), |field, split| {
            split.checked(field)
        };
        /// Whether `val_split` and `test_split` set aside the same share of every class.
        #[serde(default)]
        stratify: bool = hidden(false) => Any, |field, stratify| {
            let shares = (&validation, test_split);
            let none = matches!(
                shares,
                (Some(Validation::Split(0.0) | Validation::Set(_)), Some(0.0))
            );
            let by_column = matches!(
                &split,
                Some(Some(split)) if split.by.is_some() || split.group.is_some()
            );
            let has_folds = matches!(&split, Some(Some(split)) if split.folds.is_some());
            match stratify {
                true if by_column => field.reject("cannot be used together with a column in `data.split`", "leave one out"),
                true if none && !has_folds => field.reject(
                    "is about `data.val_split` and `data.test_split`, which are not set",
                    "add `val_split = 0.1`, or leave this out",
                ),
                _ => Some(stratify),
            }
        };
        /// Whether an epoch draws all classes equally often: samples of rare ones come several times, and not all of
        /// frequent ones come.
        #[serde(default)]
        balance: bool = hidden(false) => Any;
        /// The test set: every epoch is measured on it, nothing is ever chosen on it.
        test: Option<DataRef> = optional => Any, |field, ()| DataRef::read(field, embeds);
        /// Normalisation of the input: `(x - mean) / std`, with `x` from 0 to 1.
        normalise: Option<JobNormalise> = optional => Any, |field, ()| match embeds {
            true => field.reject(
                "is for what is trained on, and with [embed] those are vectors",
                "write `normalise` in [embed] to set the scale of the pictures",
            ),
            false => JobNormalise::from_field(field),
        };
        /// Whether the numbers of a table are brought to mean 0 and deviation 1, by the rows that are trained on. If left
        /// out, they are, unless `normalise` names a scale.
        standardise: Option<bool> = optional => Any, |field, ()| match embeds {
            true => field.reject(
                "is for the columns of a table, and with [embed] vectors are trained on",
                "leave it out",
            ),
            false => field.boolean(),
        };
        /// How training images are varied from step to step; evaluation sees them as they are.
        augment: Option<JobAugment> = optional => Table(JobAugment::read_keys), |field, augment| match embeds {
            true => field.reject(
                "is for pictures that are trained on, and with [embed] vectors are",
                "leave one out",
            ),
            false => Some(augment),
        };
        /// What becomes of a picture before a network sees it. Of pictures that are embedded, if left out,
        /// what the encoder was trained with.
        transform: Option<JobTransform> = optional => Table(JobTransform::read_keys), |field, transform| {
            transform.checked(field)
        };
        /// The share of pictures that may be unreadable: they are left out and listed. More fail the job.
        max_bad: f64 = default(0.01) => Rule::SHARE;
        /// Memory that reading a data set may take in each process, however large the set is.
        memory: Bytes = default(Bytes(1 << 30)) => Any, |field, ()| Bytes::read(field, LEAST_MEMORY);
    }
}

/// Room for a few large pictures, or some rows of a wide table.
const LEAST_MEMORY: Bytes = Bytes(64 << 20);

/// The samples that the best epoch is chosen on: never those of the test set.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[allow(clippy::large_enum_variant, reason = "a job has one of these")]
pub enum Validation {
    /// This share of the training set, set aside; 0 means that there is no validation.
    #[serde(rename = "val_split")]
    Split(f64),
    /// A set of its own.
    #[serde(rename = "val")]
    Set(DataRef),
}

/// [`Validation`] as the job file's keys.
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

impl WriteKeys for Validation {
    fn write_keys<M: SerializeMap>(&self, keys: &mut M) -> Result<(), M::Error> {
        match self {
            Validation::Split(share) => keys.serialize_entry("val_split", share),
            Validation::Set(set) => keys.serialize_entry("val", set),
        }
    }
}

impl Validation {
    /// The share of the training samples that is set aside.
    pub fn share(&self) -> f64 {
        match self {
            Validation::Split(share) => *share,
            Validation::Set(_) => 0.0,
        }
    }

    fn read(section: &mut Section<'_>, embeds: bool) -> Option<Validation> {
        let val = section.maybe("val", |field| DataRef::read(&field, embeds));
        let val_split = section.or("val_split", 0.0, |field| {
            let share = field.number(&Rule::BELOW_ONE)?;
            if share > 0.0 && !matches!(val, Some(None)) {
                return field.reject("cannot be used together with `data.val`", "leave one out");
            }
            Some(share)
        });
        Some(match val? {
            Some(set) => Validation::Set(set),
            None => Validation::Split(val_split?),
        })
    }
}
