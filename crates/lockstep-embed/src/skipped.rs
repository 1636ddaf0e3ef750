//! Pictures that could not be read: listed with their reasons, and too many of them an error.

use crate::EmbedError;
use lockstep_image::tolerated;
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
/// What `data.memory` has no room for, or no decoder's limit.
pub(crate) const TOO_LARGE: &str = "too-large";

impl SkippedPicture {
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
