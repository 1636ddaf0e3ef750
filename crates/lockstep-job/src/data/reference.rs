//! Where a set of samples is found: `data.train`, `data.val`, `data.test`.

use crate::field::Field;
use crate::nearest::suggestion;
use crate::section::Section;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The data sets that Lockstep can fetch by itself, each with its splits.
pub const KNOWN_DATASETS: &[(&str, &[&str])] = &[
    ("fashion-mnist", &["train", "test"]),
    ("cifar-10", &["train", "test"]),
];

/// Where a set of samples is found.
///
/// In the job file: `"NAME:SPLIT"` for a known data set, a path to an IDX file of images whose labels
/// lie beside it, `{ images = "...", labels = "..." }`, or the binary files of CIFAR:
/// `{ cifar = "folder", split = "train" }` or `{ cifar = ["file", "file"] }`.
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
    /// The folder that the archive of CIFAR-10's or CIFAR-100's binary files unpacks to.
    CifarFolder {
        /// The folder.
        folder: PathBuf,
        /// Which part of it.
        split: Split,
    },
    /// Files in the binary format of CIFAR-10, which make one set in their order.
    CifarFiles {
        /// The files: at least one.
        files: Vec<PathBuf>,
    },
}

/// A part of a data set that comes in two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// The samples to train on.
    Train,
    /// The samples to test on.
    Test,
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
    /// A folder of CIFAR's binary files.
    CifarFolder {
        /// The folder that the archive of CIFAR-10's or CIFAR-100's binary files unpacks to.
        cifar: PathBuf,
        /// Which part of it: `train` or `test`.
        split: Split,
    },
    /// CIFAR's binary files one by one.
    CifarFiles {
        /// Files in the binary format of CIFAR-10, which make one set in their order.
        #[schemars(length(min = 1))]
        cifar: Vec<PathBuf>,
    },
}

impl From<DataRefKeys> for DataRef {
    fn from(keys: DataRefKeys) -> Self {
        match keys {
            DataRefKeys::Text(text) => DataRef::parse(&text),
            DataRefKeys::Files { images, labels } => DataRef::Idx { images, labels },
            DataRefKeys::CifarFolder { cifar, split } => DataRef::CifarFolder {
                folder: cifar,
                split,
            },
            DataRefKeys::CifarFiles { cifar } => DataRef::CifarFiles { files: cifar },
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
            DataRef::CifarFolder { folder, split } => DataRefKeys::CifarFolder {
                cifar: folder,
                split,
            },
            DataRef::CifarFiles { files } => DataRefKeys::CifarFiles { cifar: files },
        }
    }
}

impl DataRef {
    pub(super) fn read(field: &Field<'_>) -> Option<DataRef> {
        if !field.is_text() {
            let expected = "a string or a table with `images` or `cifar`";
            let section = field.section_or(expected)?;
            return match section.has("cifar") {
                true => read_cifar(section),
                false => read_idx(section),
            };
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

fn read_idx(mut section: Section<'_>) -> Option<DataRef> {
    let images = section
        .need("images", "add `images = \"...\"`, the path of an IDX file")
        .and_then(|field| field.path());
    let labels = section.maybe("labels", |field| field.path());
    // Known here too, so that it is suggested for what looks like it.
    section.get("cifar");
    section.finish();
    Some(DataRef::Idx {
        images: images?,
        labels: labels?,
    })
}

fn read_cifar(mut section: Section<'_>) -> Option<DataRef> {
    let cifar = section.get("cifar")?;
    let reference = if cifar.is_text() {
        let split = section
            .need("split", "add `split = \"train\"` or `split = \"test\"`")
            .and_then(|field| field.one_of(&["train", "test"]));
        let folder = cifar.path();
        split
            .zip(folder)
            .map(|(split, folder)| DataRef::CifarFolder {
                folder,
                split: match split {
                    "train" => Split::Train,
                    _ => Split::Test,
                },
            })
    } else {
        let files = cifar.items_or("the path of a folder or an array of files");
        let files = files.and_then(|files| {
            if files.is_empty() {
                return cifar.reject("must not be empty", "name at least one file");
            }
            let paths: Vec<_> = files.iter().map(|file| file.path()).collect();
            paths.into_iter().collect::<Option<Vec<_>>>()
        });
        let split = section.maybe("split", |field| {
            field.reject::<()>(
                "is for a folder",
                "leave it out: the files that are named make the set",
            )
        });
        split.and(files).map(|files| DataRef::CifarFiles { files })
    };
    section.finish();
    reference
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
