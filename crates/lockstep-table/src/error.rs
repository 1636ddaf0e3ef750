//! What can be wrong with a table, with the file, the column and the row where it is.

use crate::columns::{advice, shown};
use lockstep_place::PlaceError;
use parquet::errors::ParquetError;
use std::io;
use thiserror::Error;

/// A table could not be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TableError {
    /// The place failed.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// There is nothing at the place.
    #[error("{place} does not exist")]
    Missing {
        /// The place.
        place: String,
    },
    /// The folder holds no such file.
    #[error("{place} holds no {kind} file (names that begin with `.` or `_` are left out)")]
    NoFiles {
        /// The folder.
        place: String,
        /// The kind, such as `.parquet`.
        kind: &'static str,
    },
    /// The file was replaced while it was read.
    #[error("{place} changed while it was read: read it again when its writer is done")]
    Changed {
        /// The file.
        place: String,
    },
    /// The file is something else.
    #[error("{file} is not a Parquet file: {reason}")]
    NotParquet {
        /// The file.
        file: String,
        /// What it has instead.
        reason: String,
    },
    /// The file is not whole, or its bytes are not what they should be.
    #[error("{file} is damaged or truncated: {reason}")]
    Damaged {
        /// The file.
        file: String,
        /// What the decoder says.
        reason: String,
    },
    /// A part of the file is larger than the memory that it may take.
    #[error(
        "{file}: the column `{column}` of row group {row_group} would take more than {most} bytes of memory \
         (at least {bytes}), in one page or in the rows that are read at once; if the file is right, allow \
         more with data.memory"
    )]
    TooLarge {
        /// The file.
        file: String,
        /// The row group, counted from 0.
        row_group: usize,
        /// The column.
        column: String,
        /// Bytes that it would take, at least.
        bytes: u64,
        /// Bytes that it may take: half of the memory.
        most: u64,
    },
    /// The file uses what this reader does not know.
    #[error("{file} cannot be read: {reason}")]
    Unsupported {
        /// The file.
        file: String,
        /// What it uses.
        reason: String,
    },
    /// There is no such column.
    #[error("{file} has no column `{column}`; {advice}")]
    NoColumn {
        /// The file.
        file: String,
        /// The column that was asked for.
        column: String,
        /// What would be right.
        advice: String,
    },
    /// No column is chosen for the numbers, or a column is chosen or named twice.
    #[error("{file}: {reason}")]
    Columns {
        /// The file.
        file: String,
        /// What is wrong with the choice.
        reason: String,
    },
    /// A column cannot be what it was chosen for.
    #[error("{file}: the column `{column}` holds {found}; {right}")]
    Type {
        /// The file.
        file: String,
        /// The column.
        column: String,
        /// What it holds.
        found: String,
        /// What would be right.
        right: &'static str,
    },
    /// A value of the table cannot be used.
    #[error("{file}, {at}: the column `{column}` {found}")]
    Value {
        /// The file.
        file: String,
        /// Where: `row 5` of a Parquet file, counted from 0, or `line 7` of a CSV file, counted from 1.
        at: String,
        /// The column.
        column: String,
        /// What was found, and what would be right.
        found: String,
    },
    /// A line of a CSV file is not like the others.
    #[error("{file}, line {line}: {reason}")]
    Line {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// What was to be written does not fit together.
    #[error("the rows of a table do not fit together: {reason}")]
    Uneven {
        /// What was given.
        reason: String,
    },
    /// A table could not be encoded.
    #[error("a table cannot be written: {reason}")]
    Encode {
        /// What the encoder says.
        reason: String,
    },
}

impl TableError {
    /// The choice of columns does not fit `file`.
    pub(crate) fn columns(file: &str, reason: impl Into<String>) -> TableError {
        TableError::Columns {
            file: file.to_owned(),
            reason: reason.into(),
        }
    }

    /// `file` has a column that the first file of the table does not have.
    pub(crate) fn one_more(file: &str, column: &str, first: &str) -> TableError {
        let column = shown(column);
        let reason = format!(
            "it has the column `{column}`, which {first} does not have; `features` says which are meant"
        );
        TableError::columns(file, reason)
    }

    /// `file` has two columns of this name.
    pub(crate) fn twice(file: &str, column: &str) -> TableError {
        TableError::columns(file, format!("two columns are called `{}`", shown(column)))
    }

    /// `file` has the columns of these names, and not the one that was asked for.
    pub(crate) fn no_column<'a>(
        file: &str,
        column: &str,
        names: impl Iterator<Item = &'a str> + Clone,
    ) -> TableError {
        TableError::NoColumn {
            file: file.to_owned(),
            column: shown(column),
            advice: advice(column, names),
        }
    }

    /// A column that is in the file's footer did not come out of it.
    pub(crate) fn undecoded(file: &str, column: &str) -> TableError {
        TableError::damaged(
            file,
            format!("its column `{}` could not be decoded", shown(column)),
        )
    }

    pub(crate) fn damaged(file: &str, reason: impl Into<String>) -> TableError {
        TableError::Damaged {
            file: file.to_owned(),
            reason: reason.into(),
        }
    }

    /// The bytes of `file` could not be read.
    pub(crate) fn unreadable(file: &str, error: io::Error) -> TableError {
        let said = error.to_string();
        let source = error.into_inner();
        match source.map(|source| source.downcast::<PlaceError>()) {
            Some(Ok(error)) => TableError::Place(*error),
            Some(Err(source)) => TableError::damaged(file, source.to_string()),
            None => TableError::damaged(file, said),
        }
    }

    pub(crate) fn changed(place: impl Into<String>) -> TableError {
        TableError::Changed {
            place: place.into(),
        }
    }

    /// A value in this row of a Parquet file cannot be used.
    pub(crate) fn in_row(file: &str, row: u64, column: &str, found: String) -> TableError {
        TableError::Value {
            file: file.to_owned(),
            at: format!("row {row}"),
            column: shown(column),
            found,
        }
    }

    pub(crate) fn encode(error: ParquetError) -> TableError {
        TableError::Encode {
            reason: error.to_string(),
        }
    }

    /// What a failed attempt to decode `file` says.
    pub(crate) fn decode(file: &str, error: ParquetError) -> TableError {
        let file = file.to_owned();
        match error {
            // A place that failed under the decoder: its own words are the better ones.
            ParquetError::External(source) => match source.downcast::<PlaceError>() {
                Ok(error) => TableError::Place(*error),
                Err(source) => TableError::Damaged {
                    file,
                    reason: source.to_string(),
                },
            },
            ParquetError::NYI(reason) => TableError::Unsupported { file, reason },
            ParquetError::General(reason)
            | ParquetError::EOF(reason)
            | ParquetError::ArrowError(reason) => TableError::Damaged { file, reason },
            error => TableError::Damaged {
                file,
                reason: error.to_string(),
            },
        }
    }
}
