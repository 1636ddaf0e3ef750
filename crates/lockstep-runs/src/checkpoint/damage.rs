//! Why a checkpoint cannot be used.

use super::manifest::FORMAT;
use lockstep_place::{Place, PlaceError};
use std::fmt;

/// A file of a checkpoint that is not as it was written, or not for this program.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {damage}")]
pub struct Damaged {
    /// The file.
    pub place: String,
    /// What is wrong with it.
    pub damage: Damage,
}

impl Damaged {
    pub(super) fn new(place: &Place, damage: Damage) -> Self {
        Self {
            place: place.to_string(),
            damage,
        }
    }

    pub(super) fn unread(place: &Place) -> impl FnOnce(PlaceError) -> Self {
        move |error| match error {
            PlaceError::NotFound { .. } => Self::new(place, Damage::Missing),
            PlaceError::Io { source, .. } => {
                Self::new(place, Damage::Unreadable(source.to_string()))
            }
            error => Self::new(place, Damage::Unreadable(error.to_string())),
        }
    }
}

/// What is wrong with a file of a checkpoint.
#[derive(Debug)]
#[non_exhaustive]
pub enum Damage {
    /// It is not there.
    Missing,
    /// The system does not let it be read.
    Unreadable(String),
    /// It has another length than it was written with.
    Length {
        /// Bytes that it has.
        found: u64,
        /// Bytes that it should have.
        expected: u64,
    },
    /// Its bytes are not those that were written.
    Hash,
    /// It is not in the form of a manifest.
    Form(String),
    /// A newer version of this program wrote it.
    Newer {
        /// The format that it is in.
        found: u64,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(f, "it is missing"),
            Self::Unreadable(error) => write!(f, "it cannot be read: {error}"),
            Self::Length { found, expected } => write!(
                f,
                "it is damaged: it has {found} bytes instead of {expected}"
            ),
            Self::Hash => write!(f, "it is damaged: its hash is not that of its content"),
            Self::Form(reason) => write!(f, "it is damaged: {reason}"),
            Self::Newer { found } => write!(
                f,
                "its format is {found}, and this program reads up to {FORMAT}: a newer version of it \
                 wrote this"
            ),
        }
    }
}
