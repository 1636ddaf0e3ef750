//! Where a set of samples is found: `data.train`, `data.val`, `data.test`.

use super::csv::{self, JobCsv};
use super::keys::DataRefKeys;
use super::location::{Location, scheme};
use super::table::{self, JobColumns};
use crate::field::Field;
use crate::keys::{FromField, words};
use crate::nearest::suggestion;
use crate::section::Section;
use lockstep_base::known::KNOWN;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where a set of samples is found.
///
/// In the job file: `"NAME:SPLIT"` for a known data set, a path to an IDX file of images whose labels
/// lie beside it, `{ images = "...", labels = "..." }`, the binary files of CIFAR:
/// `{ cifar = "folder", split = "train" }` or `{ cifar = ["file", "file"] }`, a folder of pictures:
/// `"folder/"`, `"s3://bucket/folder"` or `{ pictures = "..." }`, or a table: a name that ends in `.parquet`,
/// `.csv`, `.jsonl`, `.arrow` or `.feather`, `{ parquet = "...", features = "embedding", label = "label" }`,
/// `{ csv = "..." }`, `{ jsonl = "..." }` or `{ arrow = "..." }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "DataRefKeys", into = "DataRefKeys")]
pub enum DataRef {
    /// One of the sets in [`lockstep_base::known::KNOWN`], such as `fashion-mnist:train`.
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
    /// A folder of pictures, whose classes are the folders in it.
    Pictures {
        /// The folder.
        folder: Location,
    },
    /// A Parquet file, or a folder of them.
    Parquet {
        /// The file or folder.
        files: Location,
        /// Which columns mean what.
        columns: JobColumns,
    },
    /// A CSV file with names in its first line.
    Csv {
        /// The file.
        file: Location,
        /// Which columns mean what.
        columns: JobColumns,
        /// How it is written.
        written: JobCsv,
    },
    /// A file of Arrow or Feather, or a folder of them.
    Arrow {
        /// The file or folder.
        files: Location,
        /// Which columns mean what.
        columns: JobColumns,
    },
    /// A file with an object a line, or a folder of them.
    JsonLines {
        /// The file or folder.
        files: Location,
        /// Which columns mean what.
        columns: JobColumns,
    },
}

words! {
    /// A part of a data set that comes in two.
    pub enum Split {
        /// The samples to train on.
        "train" Train
        /// The samples to test on.
        "test" Test
    }
}

impl DataRef {
    /// Which columns of a table mean what, if it is one.
    pub fn columns(&self) -> Option<&JobColumns> {
        match self {
            DataRef::Parquet { columns, .. }
            | DataRef::Csv { columns, .. }
            | DataRef::Arrow { columns, .. }
            | DataRef::JsonLines { columns, .. } => Some(columns),
            _ => None,
        }
    }

    /// The same, to change.
    pub fn columns_mut(&mut self) -> Option<&mut JobColumns> {
        match self {
            DataRef::Parquet { columns, .. }
            | DataRef::Csv { columns, .. }
            | DataRef::Arrow { columns, .. }
            | DataRef::JsonLines { columns, .. } => Some(columns),
            _ => None,
        }
    }

    /// Reads the short form: a URL, a name with its split if nothing before the first `:` looks like a
    /// folder, else a path.
    pub(crate) fn parse(text: &str) -> DataRef {
        match text.split_once(':') {
            Some((name, split)) if !name.contains(['/', '\\']) && scheme(text).is_none() => {
                DataRef::Known {
                    name: name.to_owned(),
                    split: split.to_owned(),
                }
            }
            _ => DataRef::by_name(Location::new(text)),
        }
    }

    /// What a file or folder of this name holds.
    fn by_name(location: Location) -> DataRef {
        let columns = JobColumns::default();
        if location.has_extension("parquet") {
            let files = location;
            DataRef::Parquet { files, columns }
        } else if location.has_extension_or_gz("csv") || location.has_extension_or_gz("tsv") {
            let delimiter = location.has_extension_or_gz("tsv").then_some('\t');
            DataRef::Csv {
                file: location,
                columns,
                written: JobCsv {
                    delimiter,
                    ..JobCsv::default()
                },
            }
        } else if location.has_extension_or_gz("jsonl") || location.has_extension_or_gz("ndjson") {
            let files = location;
            DataRef::JsonLines { files, columns }
        } else if location.has_extension("arrow") || location.has_extension("feather") {
            let files = location;
            DataRef::Arrow { files, columns }
        } else if location.is_url() || location.as_str().ends_with('/') {
            DataRef::Pictures { folder: location }
        } else {
            DataRef::Idx {
                images: PathBuf::from(location.as_str()),
                labels: None,
            }
        }
    }
}

impl DataRef {
    /// Reads a reference; with `embeds`, it must be one to pictures.
    pub(super) fn read(field: &Field<'_>, embeds: bool) -> Option<DataRef> {
        let found = match field.is_text() {
            true => DataRef::read_text(field),
            false => DataRef::read_table(field),
        }?;
        match found {
            // A folder is not known by its name, but here it can be nothing else.
            DataRef::Idx { labels: None, .. } if embeds && field.is_text() => {
                Location::from_field(field).map(|folder| DataRef::Pictures { folder })
            }
            DataRef::Pictures { .. } => Some(found),
            _ if embeds => field.reject(
                "must be a folder of pictures where there is an [embed] section",
                "name a folder, or leave [embed] out",
            ),
            _ => Some(found),
        }
    }

    fn read_table(field: &Field<'_>) -> Option<DataRef> {
        let kinds = "`images`, `cifar`, `pictures`, `parquet`, `arrow`, `csv` or `jsonl`";
        let mut section = field.section_or(&format!("a string or a table with {kinds}"))?;
        if section.has("cifar") {
            read_cifar(section)
        } else if section.has("pictures") {
            let folder = section.get("pictures")?;
            let folder = Location::from_field(&folder);
            section.finish();
            folder.map(|folder| DataRef::Pictures { folder })
        } else if section.has("parquet") {
            let read = table::read_columns(section, "parquet");
            read.map(|(files, columns)| DataRef::Parquet { files, columns })
        } else if section.has("arrow") {
            let read = table::read_columns(section, "arrow");
            read.map(|(files, columns)| DataRef::Arrow { files, columns })
        } else if section.has("csv") {
            csv::read(section).map(|(file, columns, written)| DataRef::Csv {
                file,
                columns,
                written,
            })
        } else if section.has("jsonl") {
            let read = table::read_json_lines(section);
            read.map(|(files, columns)| DataRef::JsonLines { files, columns })
        } else if let Some(key) = UNNAMED.into_iter().find(|key| section.has(key)) {
            section
                .get(key)
                .and_then(|field| name_what_it_holds(&field))
        } else {
            read_idx(section)
        }
    }

    fn read_text(field: &Field<'_>) -> Option<DataRef> {
        let text = field.text()?;
        if let Some(set) = lockstep_base::known::find(text) {
            return field.reject(
                "needs a split of the data set",
                format!("write \"{}:{}\"", set.name, set.splits[0].name),
            );
        }
        match DataRef::parse(text) {
            DataRef::Known { name, split } => {
                let Some(set) = lockstep_base::known::find(&name) else {
                    let names: Vec<&str> = KNOWN.iter().map(|set| set.name).collect();
                    return field.reject(
                        format!("names an unknown data set `{name}`"),
                        format!(
                            "{} (a path has a `/` before any `:`)",
                            suggestion(&name, &names)
                        ),
                    );
                };
                let splits: Vec<&str> = set.splits.iter().map(|split| split.name).collect();
                if !splits.contains(&split.as_str()) {
                    return field.reject(
                        format!("names an unknown split `{split}` of `{name}`"),
                        suggestion(&split, &splits),
                    );
                }
                Some(DataRef::Known { name, split })
            }
            // The `/` has said what it is.
            DataRef::Pictures { .. } => {
                let folder = Location::from_field(field)?.without_slash();
                Some(DataRef::Pictures { folder })
            }
            _ if is_excel(text) => field.reject(
                "names an Excel file, which is not read",
                "save the sheet as \"CSV UTF-8\", or convert it in Python: \
                 pandas.read_excel(\"a.xlsx\").to_parquet(\"a.parquet\")",
            ),
            _ => Location::from_field(field).map(DataRef::by_name),
        }
    }
}

/// Keys that people name a file by, and that do not say what it holds.
const UNNAMED: [&str; 4] = ["path", "file", "folder", "source"];

/// Refuses a key that does not say what a file holds, with the key that does.
fn name_what_it_holds(field: &Field<'_>) -> Option<DataRef> {
    let text = field.text()?;
    let key = match DataRef::by_name(Location::new(text)) {
        DataRef::Csv { .. } => "csv",
        DataRef::Parquet { .. } => "parquet",
        DataRef::Arrow { .. } => "arrow",
        DataRef::JsonLines { .. } => "jsonl",
        _ => {
            return field.reject(
                "does not say what it holds",
                "name it by `csv`, `parquet`, `arrow`, `jsonl`, `pictures`, `images` or `cifar` instead",
            );
        }
    };
    field.reject(
        "does not say what it holds",
        format!("write `{key} = {text:?}`"),
    )
}

/// Whether a file of this name holds sheets of Excel or its like.
fn is_excel(name: &str) -> bool {
    let name = name.to_lowercase();
    let endings = [".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"];
    endings.iter().any(|ending| name.ends_with(ending))
}

fn read_idx(mut section: Section<'_>) -> Option<DataRef> {
    let images = section
        .need("images", "add `images = \"...\"`, the path of an IDX file")
        .and_then(|field| field.path());
    let labels = section.maybe("labels", |field| field.path());
    // Known here too, so that they are suggested for what looks like them.
    for key in ["cifar", "pictures", "parquet", "arrow", "csv", "jsonl"] {
        section.get(key);
    }
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
            .and_then(|field| Split::from_field(&field));
        let folder = cifar.path();
        split
            .zip(folder)
            .map(|(split, folder)| DataRef::CifarFolder { folder, split })
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
