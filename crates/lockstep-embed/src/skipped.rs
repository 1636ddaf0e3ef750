//! Pictures that could not be read: listed with their reasons, and too many of them an error.

use crate::EmbedError;
use lockstep_image::{has_ending, tolerated};
use lockstep_place::Place;
use serde::{Deserialize, Serialize};

/// The list's name in the folder of a set's vectors.
pub const SKIPPED_FILE: &str = "skipped.jsonl";

/// A picture that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedPicture {
    /// Where it lies.
    pub path: String,
    /// What is wrong with it, in a word.
    pub kind: String,
    /// The same in a sentence.
    pub reason: String,
}

/// What the system refused: another time it may not.
pub(crate) const UNREADABLE: &str = "unreadable";
/// What is no picture at all, as [`ImageError::kind`](lockstep_image::ImageError::kind) calls it.
const NOT_A_PICTURE: &str = "not-an-image";
/// What is not looked at, by its name.
const NOT_LOOKED_AT: &str = "not-looked-at";
/// What `data.memory` has no room for, or no decoder's limit.
pub(crate) const TOO_LARGE: &str = "too-large";

impl SkippedPicture {
    /// A file of a folder that is not looked at.
    pub fn not_looked_at(folder: &str, path: &str) -> Self {
        Self {
            path: format!("{folder}/{path}"),
            kind: NOT_LOOKED_AT.to_owned(),
            reason: "its name does not end as that of a picture".to_owned(),
        }
    }

    /// Whether it is a picture that cannot be read. A file that is none, and whose name says nothing of one, is not.
    pub fn is_bad(&self) -> bool {
        self.kind != NOT_A_PICTURE || has_ending(&self.path)
    }

    /// Whether it may be read next time although it is the same picture: where the system refused it, or,
    /// with more memory than it was tried with, where there was no room.
    pub(crate) fn is_worth_another_try(&self, more_memory: bool) -> bool {
        self.kind == UNREADABLE || (self.kind == TOO_LARGE && more_memory)
    }
}

/// Writes the list into the folder of the set's vectors, or removes it when there is nothing to list.
///
/// # Errors
/// When the place cannot be written.
pub fn write_list(skipped: &[SkippedPicture], store: &Place) -> Result<(), EmbedError> {
    let file = store.join(SKIPPED_FILE)?;
    if skipped.is_empty() {
        if file.entry()?.is_some() {
            file.delete()?;
        }
        return Ok(());
    }
    let mut lines = String::new();
    for one in skipped {
        // Three strings: there is nothing that could not be written.
        lines += &serde_json::to_string(one).unwrap_or_default();
        lines.push('\n');
    }
    Ok(file.write(lines.as_bytes())?)
}

/// Refuses more than the allowed share.
///
/// # Errors
/// When `skipped` is more than `max_bad` of `all`.
pub fn check_share(
    skipped: &[SkippedPicture],
    all: usize,
    max_bad: f64,
    folder: &str,
    store: &Place,
) -> Result<(), EmbedError> {
    let Some(first) = skipped.first() else {
        return Ok(());
    };
    if skipped.len() <= tolerated(max_bad, all) {
        return Ok(());
    }
    Err(EmbedError::TooManyBad {
        folder: folder.to_owned(),
        bad: skipped.len(),
        all,
        max_bad,
        list: store.join(SKIPPED_FILE)?.to_string(),
        first: format!("{}: {}", first.path, first.reason),
    })
}
