//! What can go wrong with an index, with the file that it went wrong at.

use lockstep_base::fs::FsError;
use lockstep_place::PlaceError;
use lockstep_runs::RunsError;
use lockstep_runs::document::DocumentError;
use lockstep_runs::registry::RegistryError;
use rusqlite::ErrorCode;
use thiserror::Error;

/// An index could not be used as asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The index was written by a later version of this program.
    #[error(
        "{path} is an index of a newer lockstep (format {found}, this one knows {known}); \
         `lockstep runs reindex` makes it again in this format"
    )]
    Newer {
        /// The file.
        path: String,
        /// The format that it has.
        found: u32,
        /// The newest one that this program knows.
        known: u32,
    },
    /// SQLite refused something.
    #[error("the index {path}: {source}")]
    Sqlite {
        /// The file.
        path: String,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The disk refused something.
    #[error("the index {path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file of a run could not be read or changed.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A run could not be read.
    #[error(transparent)]
    Runs(#[from] RunsError),
    /// The models of a store could not be read.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A place could not be read.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A file of this machine could not be used.
    #[error(transparent)]
    Fs(#[from] FsError),
}

impl IndexError {
    /// For `map_err`: SQLite refused something at this file.
    pub(crate) fn sqlite(path: impl ToString) -> impl Fn(rusqlite::Error) -> IndexError {
        let path = path.to_string();
        move |source| IndexError::Sqlite {
            path: path.clone(),
            source,
        }
    }

    /// Whether the file is damaged, so that making it again helps.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            IndexError::Sqlite { source, .. } => match source {
                rusqlite::Error::SqliteFailure(error, words) => {
                    // A table that is missing is an index that somebody else made.
                    let foreign = words.as_deref().is_some_and(|words| {
                        words.contains("no such table") || words.contains("no such column")
                    });
                    foreign
                        || matches!(
                            error.code,
                            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase
                        )
                }
                rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..) => true,
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether it is the index's own trouble, so that another index of the same folders may do.
    pub(crate) fn is_own(&self) -> bool {
        matches!(
            self,
            IndexError::Newer { .. }
                | IndexError::Sqlite { .. }
                | IndexError::Io { .. }
                | IndexError::Fs(_)
        )
    }
}
