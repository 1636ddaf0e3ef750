//! References to data as the job file writes them.

use super::table::JobColumns;
use super::{DataRef, JobCsv, JobEncoding, Location, Split};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// [`DataRef`] as the job file writes it.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub(super) enum DataRefKeys {
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
    /// A folder of pictures.
    Pictures {
        /// The folder, whose folders are the classes.
        pictures: Location,
    },
    /// A table in Parquet files.
    Parquet {
        /// A Parquet file, or a folder of them.
        parquet: Location,
        #[serde(flatten)]
        columns: JobColumns,
    },
    /// A table in Arrow's files.
    Arrow {
        /// A file of Arrow or Feather, or a folder of them.
        arrow: Location,
        #[serde(flatten)]
        columns: JobColumns,
    },
    /// A table in files of JSON lines.
    JsonLines {
        /// A file with an object a line, or a folder of them.
        jsonl: Location,
        #[serde(flatten)]
        columns: JobColumns,
    },
    /// A table in a CSV file.
    Csv {
        /// A CSV file with names in its first line.
        csv: Location,
        #[serde(flatten)]
        columns: JobColumns,
        /// What stands between two fields: if left out, `,`, `;`, a tab or `|`, as looking at the file finds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delimiter: Option<char>,
        /// How the text is stored: if left out, as UTF-8, or as UTF-16 where looking at the file finds that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        encoding: Option<JobEncoding>,
        /// What lines begin with that are none of the table.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<char>,
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
            DataRefKeys::Pictures { pictures } => DataRef::Pictures { folder: pictures },
            DataRefKeys::Parquet { parquet, columns } => DataRef::Parquet {
                files: parquet,
                columns,
            },
            DataRefKeys::Arrow { arrow, columns } => DataRef::Arrow {
                files: arrow,
                columns,
            },
            DataRefKeys::JsonLines { jsonl, columns } => DataRef::JsonLines {
                files: jsonl,
                columns,
            },
            DataRefKeys::Csv {
                csv,
                columns,
                delimiter,
                encoding,
                comment,
            } => DataRef::Csv {
                file: csv,
                columns,
                written: JobCsv {
                    delimiter,
                    encoding,
                    comment,
                },
            },
        }
    }
}

impl From<DataRef> for DataRefKeys {
    fn from(data: DataRef) -> Self {
        match data {
            DataRef::Known { name, split } => DataRefKeys::Text(format!("{name}:{split}")),
            DataRef::Idx { images, labels } => match images.to_str() {
                // The short form only where it is read back as the same path.
                Some(text) if labels.is_none() && !text.contains(':') && is_idx(text) => {
                    DataRefKeys::Text(text.to_owned())
                }
                _ => DataRefKeys::Files { images, labels },
            },
            DataRef::CifarFolder { folder, split } => DataRefKeys::CifarFolder {
                cifar: folder,
                split,
            },
            DataRef::CifarFiles { files } => DataRefKeys::CifarFiles { cifar: files },
            DataRef::Pictures { folder } => DataRefKeys::Pictures { pictures: folder },
            DataRef::Parquet { files, columns } => DataRefKeys::Parquet {
                parquet: files,
                columns,
            },
            DataRef::Arrow { files, columns } => DataRefKeys::Arrow {
                arrow: files,
                columns,
            },
            DataRef::JsonLines { files, columns } => DataRefKeys::JsonLines {
                jsonl: files,
                columns,
            },
            DataRef::Csv {
                file,
                columns,
                written,
            } => DataRefKeys::Csv {
                csv: file,
                columns,
                delimiter: written.delimiter,
                encoding: written.encoding,
                comment: written.comment,
            },
        }
    }
}

/// Whether a path is read as an IDX file where only its name is known.
fn is_idx(text: &str) -> bool {
    matches!(DataRef::parse(text), DataRef::Idx { .. })
}
