//! Why predictions could not be written.

use lockstep_base::fs::FsError;
use lockstep_table::TableError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why predictions could not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The name of a file does not say what is to be written.
    #[error(
        "--out {out}: the name must end in .parquet, .jsonl or .csv, which says what is written; `-` is standard output",
        out = out.display()
    )]
    Format {
        /// The name.
        out: PathBuf,
    },
    /// Two columns of the output would have one name.
    #[error("the output would have two columns `{column}`: leave it out of --id and --keep")]
    Twice {
        /// The name.
        column: String,
    },
    /// The output cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file cannot be made, or cannot be given its name.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// A row of CSV cannot be written.
    #[error(transparent)]
    Csv(#[from] csv::Error),
    /// A row of JSON cannot be written.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A Parquet file cannot be made.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// What a job says of its model does not fit its data.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {reason}")]
pub struct JobMisfit {
    /// The key of the job file.
    pub key: String,
    /// What is wrong, and what would be right.
    pub reason: String,
}
