//! Small files of JSON in a store, which say of which version their format is.
//!
//! Such a file is changed on the condition that it is as it was read, so of several who change it at once none is lost.

use lockstep_place::{Place, PlaceError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::ErrorKind;

/// How often a change is tried when others change the file at the same time.
pub(crate) const TRIES: usize = 100;

/// The largest such file, in bytes.
const LARGEST: u64 = 4 << 20;

/// Which versions of a file are understood.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// The key that holds the version. A file without it is of the first.
    pub key: &'static str,
    /// The newest one that this program knows.
    pub known: u32,
}

/// Why a file could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// It was written by a later version of this program.
    #[error("{path} is of a newer lockstep (version {found}, this one knows {known})")]
    Newer {
        /// The file.
        path: String,
        /// The version that it has.
        found: u64,
        /// The newest one that this program knows.
        known: u32,
    },
    /// It is not what it should be.
    #[error("{path}: {what}")]
    Odd {
        /// The file.
        path: String,
        /// What is wrong with it.
        what: String,
    },
    /// It would be larger than what is read.
    #[error("{path} would have {size} bytes, and may have {most}")]
    Full {
        /// The file.
        path: String,
        /// The bytes that it would have.
        size: u64,
        /// The most that it may have.
        most: u64,
    },
    /// Many wrote it at once, for longer than anyone should wait.
    #[error("{path} was changed by others again and again; try once more")]
    Contended {
        /// The file.
        path: String,
    },
    /// It could not be reached.
    #[error(transparent)]
    Place(#[from] PlaceError),
}

/// What a file says; nothing if there is none.
///
/// # Errors
/// When it cannot be read, is none of ours, or is of a later version.
pub fn read<T: DeserializeOwned>(file: &Place, format: Format) -> Result<Option<T>, DocumentError> {
    match file.read_at_most(LARGEST) {
        Ok(bytes) => understand(file, format, &bytes).map(Some),
        Err(PlaceError::NotFound { .. }) => Ok(None),
        Err(PlaceError::Io { source, .. }) if source.kind() == ErrorKind::NotADirectory => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Changes what a file says, or makes it from what is said without one. Returns what the last call of `change` did.
///
/// # Errors
/// When it cannot be read or written, is none of ours, or is of a later version.
pub fn change<T: DeserializeOwned + Default + Serialize, R>(
    file: &Place,
    format: Format,
    change: impl Fn(&mut T) -> R,
) -> Result<R, DocumentError> {
    for _ in 0..TRIES {
        check_size(file)?;
        let found = file.read_versioned()?;
        let mut value = match &found {
            Some((bytes, _)) => understand(file, format, bytes)?,
            None => T::default(),
        };
        let changed = change(&mut value);
        let written = match &found {
            Some((_, version)) => file.replace_if(version, &text(file, &value)?)?.is_some(),
            None => create(file, &value)?,
        };
        if written {
            return Ok(changed);
        }
    }
    Err(DocumentError::Contended {
        path: file.to_string(),
    })
}

/// Refuses a file that is too large to be one of these.
fn check_size(file: &Place) -> Result<(), PlaceError> {
    match file.entry()? {
        Some(entry) if entry.size > LARGEST => Err(PlaceError::TooLarge {
            place: file.to_string(),
            size: entry.size,
            most: LARGEST,
        }),
        _ => Ok(()),
    }
}

/// Makes a file. Returns whether there was none.
///
/// # Errors
/// When it would be too large, or cannot be written.
pub fn create(file: &Place, value: &impl Serialize) -> Result<bool, DocumentError> {
    Ok(file.create_new(&text(file, value)?)?.is_some())
}

/// Writes a file, whatever it said before.
///
/// # Errors
/// When it would be too large, or cannot be written.
pub fn write(file: &Place, value: &impl Serialize) -> Result<(), DocumentError> {
    Ok(file.write(&text(file, value)?)?)
}

/// A value as such a file has it. One that nobody could read afterwards is refused.
fn text(file: &Place, value: &impl Serialize) -> Result<Vec<u8>, DocumentError> {
    let mut text = serde_json::to_vec_pretty(value).unwrap_or_default();
    text.push(b'\n');
    let size = text.len() as u64;
    match size <= LARGEST {
        true => Ok(text),
        false => Err(DocumentError::Full {
            path: file.to_string(),
            size,
            most: LARGEST,
        }),
    }
}

fn understand<T: DeserializeOwned>(
    file: &Place,
    format: Format,
    bytes: &[u8],
) -> Result<T, DocumentError> {
    let odd = |error: serde_json::Error| DocumentError::Odd {
        path: file.to_string(),
        what: error.to_string(),
    };
    let value: Value = serde_json::from_slice(bytes).map_err(odd)?;
    let known = format.known;
    match value[format.key].as_u64() {
        Some(found) if found > u64::from(known) => Err(DocumentError::Newer {
            path: file.to_string(),
            found,
            known,
        }),
        // From the text, so that a mistake is told with its line.
        _ => serde_json::from_slice(bytes).map_err(odd),
    }
}
