//! One part: a piece of work, and the file that it becomes.

use crate::skipped::TOO_LARGE;
use crate::{EmbedError, EmbedRecipe, ListedPicture, SkippedPicture};
use lockstep_place::Place;
use lockstep_table::{TableError, metadata};
use serde::{Deserialize, Serialize};
use sha2::Digest;

/// The keys of what a part's file says of itself.
const FINGERPRINT: &str = "lockstep.fingerprint";
const SKIPPED: &str = "lockstep.skipped";
const MODEL: &str = "lockstep.model_sha256";
const ROWS: &str = "lockstep.rows";
const MEMORY: &str = "lockstep.memory";

/// One part, as it is handed to whoever makes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartTask {
    /// Its number, from 0.
    pub number: usize,
    /// A hash of the recipe and of the pictures as they were listed.
    pub fingerprint: String,
    /// The pictures.
    pub pictures: Vec<ListedPicture>,
}

/// What is known of a finished part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishedPart {
    /// Vectors in it.
    pub rows: usize,
    /// Pictures that could not be read.
    pub skipped: Vec<SkippedPicture>,
}

impl PartTask {
    pub(crate) fn new(
        number: usize,
        pictures: Vec<ListedPicture>,
        recipe: &EmbedRecipe,
    ) -> PartTask {
        let mut hash = recipe.hash();
        for picture in &pictures {
            for text in [&picture.path, &picture.version] {
                hash.update((text.len() as u64).to_le_bytes());
                hash.update(text);
            }
            hash.update(picture.size.to_le_bytes());
        }
        PartTask {
            number,
            fingerprint: lockstep_base::fs::hex::encode(hash.finalize()),
            pictures,
        }
    }

    /// What its file says of itself.
    pub(crate) fn metadata(
        &self,
        recipe: &EmbedRecipe,
        finished: &FinishedPart,
        memory: u64,
    ) -> Result<Vec<(&'static str, String)>, EmbedError> {
        let skipped =
            serde_json::to_string(&finished.skipped).map_err(|error| EmbedError::Part {
                file: part_name(self.number),
                reason: error.to_string(),
            })?;
        let mut metadata = vec![
            (FINGERPRINT, self.fingerprint.clone()),
            (MODEL, recipe.model_sha256.clone()),
            (ROWS, finished.rows.to_string()),
            (SKIPPED, skipped),
        ];
        // How much there was matters only to what did not fit: all else is the same at any limit.
        if finished.skipped.iter().any(|one| one.kind == TOO_LARGE) {
            metadata.push((MEMORY, memory.to_string()));
        }
        Ok(metadata)
    }
}

/// The name of a part's file.
pub(crate) fn part_name(number: usize) -> String {
    format!("part-{number:05}.parquet")
}

/// The number of the part whose file has this name, if it is one.
pub fn part_number(name: &str) -> Option<usize> {
    let number = name.strip_prefix("part-")?.strip_suffix(".parquet")?;
    let number = number.parse().ok()?;
    (part_name(number) == name).then_some(number)
}

/// The finished part, if its file is there, was made from the same recipe and pictures, and lacks none that
/// could be read now, within `memory` bytes.
///
/// # Errors
/// When the place cannot be read. A file that is damaged, or somebody else's, counts as not there.
pub fn find(
    task: &PartTask,
    store: &Place,
    memory: u64,
) -> Result<Option<FinishedPart>, EmbedError> {
    let file = store.join(&part_name(task.number))?;
    if file.entry()?.is_none() {
        return Ok(None);
    }
    let found = match metadata(&file) {
        Ok(found) => found,
        Err(TableError::Place(error)) => return Err(error.into()),
        Err(_) => return Ok(None),
    };
    let value = |key: &str| found.get(key);
    if value(FINGERPRINT) != Some(&task.fingerprint) {
        return Ok(None);
    }
    let rows = value(ROWS).and_then(|rows| rows.parse().ok());
    let skipped =
        value(SKIPPED).and_then(|list| serde_json::from_str::<Vec<SkippedPicture>>(list).ok());
    let had: Option<u64> = value(MEMORY).and_then(|memory| memory.parse().ok());
    let more = had.is_some_and(|had| memory > had);
    let skipped = skipped.filter(|list| !list.iter().any(|one| one.is_worth_another_try(more)));
    Ok(rows
        .zip(skipped)
        .map(|(rows, skipped)| FinishedPart { rows, skipped }))
}
