//! `[data]`: what to learn from.

use crate::field::{Field, Rule};
use crate::nearest::suggestion;
use crate::section::Section;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The data sets that Lockstep can fetch by itself, each with its splits.
pub const KNOWN_DATASETS: &[(&str, &[&str])] = &[("fashion-mnist", &["train", "test"])];

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

/// Where a set of samples is found.
///
/// In the job file: `"NAME:SPLIT"` for a known data set, a path to an IDX file of images whose labels
/// lie beside it, or `{ images = "...", labels = "..." }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "DataRefKeys", into = "DataRefKeys")]
pub enum DataRef {
    /// One of the [`KNOWN_DATASETS`], such as `fashion-mnist:train`.
    Known {
        /// Its name.
        name: String,
        /// Which part of it.
        split: String,
    },
    /// A pair of IDX files, plain or gzipped.
    Idx {
        /// The images.
        images: PathBuf,
        /// The labels; if absent, the file beside the images whose name says so.
        labels: Option<PathBuf>,
    },
}

impl DataRef {
    /// Reads the short form: a name with its split if nothing before the first `:` looks like a
    /// folder, else a path.
    pub(crate) fn parse(text: &str) -> DataRef {
        match text.split_once(':') {
            Some((name, split)) if !name.contains(['/', '\\']) => DataRef::Known {
                name: name.to_owned(),
                split: split.to_owned(),
            },
            _ => DataRef::Idx {
                images: PathBuf::from(text),
                labels: None,
            },
        }
    }
}

/// [`DataRef`] as the job file writes it.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
enum DataRefKeys {
    /// A known data set as `NAME:SPLIT`, or the path of an IDX file of images.
    Text(String),
    /// The paths of a pair of IDX files.
    Files {
        /// The IDX file of images.
        images: PathBuf,
        /// The IDX file of labels; if left out, it is found beside the images by its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        labels: Option<PathBuf>,
    },
}

impl From<DataRefKeys> for DataRef {
    fn from(keys: DataRefKeys) -> Self {
        match keys {
            DataRefKeys::Text(text) => DataRef::parse(&text),
            DataRefKeys::Files { images, labels } => DataRef::Idx { images, labels },
        }
    }
}

impl From<DataRef> for DataRefKeys {
    fn from(data: DataRef) -> Self {
        match data {
            DataRef::Known { name, split } => DataRefKeys::Text(format!("{name}:{split}")),
            DataRef::Idx { images, labels } => match images.to_str() {
                // The short form only where it is read back as the same path.
                Some(text) if labels.is_none() && !text.contains(':') => {
                    DataRefKeys::Text(text.to_owned())
                }
                _ => DataRefKeys::Files { images, labels },
            },
        }
    }
}

/// Normalisation of the input, one number a channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Normalise {
    /// What is subtracted.
    #[schemars(length(min = 1))]
    pub mean: Vec<f64>,
    /// What is divided by.
    #[schemars(length(min = 1))]
    pub std: Vec<f64>,
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
        })
    }
}

impl DataRef {
    fn read(field: &Field<'_>) -> Option<DataRef> {
        if !field.is_text() {
            let mut section = field.section_or("a string or a table with `images`")?;
            let images = section
                .need("images", "add `images = \"...\"`, the path of an IDX file")
                .and_then(|field| field.path());
            let labels = section.maybe("labels", |field| field.path());
            section.finish();
            return Some(DataRef::Idx {
                images: images?,
                labels: labels?,
            });
        }
        let text = field.text()?;
        let names: Vec<&str> = KNOWN_DATASETS.iter().map(|(name, _)| *name).collect();
        if let Some((name, splits)) = KNOWN_DATASETS.iter().find(|(name, _)| *name == text) {
            return field.reject(
                "needs a split of the data set",
                format!("write \"{name}:{}\"", splits[0]),
            );
        }
        match DataRef::parse(text) {
            DataRef::Known { name, split } if !split.starts_with("//") => {
                let Some((_, splits)) = KNOWN_DATASETS.iter().find(|(known, _)| *known == name)
                else {
                    return field.reject(
                        format!("names an unknown data set `{name}`"),
                        format!(
                            "{} (a path has a `/` before any `:`)",
                            suggestion(&name, &names)
                        ),
                    );
                };
                if !splits.contains(&split.as_str()) {
                    return field.reject(
                        format!("names an unknown split `{split}` of `{name}`"),
                        suggestion(&split, splits),
                    );
                }
                Some(DataRef::Known { name, split })
            }
            _ => Some(DataRef::Idx {
                images: field.path()?,
                labels: None,
            }),
        }
    }
}

impl Normalise {
    fn read(mut section: Section<'_>) -> Option<Normalise> {
        let mean = section
            .need("mean", "add `mean = [...]`, one number a channel")
            .and_then(|field| {
                let mean = field.all(|x| x.number(Rule::FINITE))?;
                if mean.is_empty() {
                    return field.reject("must not be empty", "one number a channel");
                }
                Some(mean)
            });
        let std = section
            .need("std", "add `std = [...]`, one number a channel")
            .and_then(|field| {
                let std = field.all(|x| x.number(Rule::NOT_ZERO))?;
                match &mean {
                    Some(mean) if mean.len() != std.len() => field.reject(
                        format!(
                            "must be as long as `mean` ({}), found {}",
                            mean.len(),
                            std.len()
                        ),
                        "one number a channel in both",
                    ),
                    _ => Some(std),
                }
            });
        section.finish();
        Some(Normalise {
            mean: mean?,
            std: std?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_looks_like_a_known_name_stays_a_path() {
        for images in ["a:b", "./a:b", "/a:b", "a"] {
            let data = DataRef::Idx {
                images: images.into(),
                labels: None,
            };
            let json = serde_json::to_string(&data).expect("JSON");
            let again: DataRef = serde_json::from_str(&json).expect("JSON");
            assert_eq!(again, data, "{json}");
        }
    }
}
