//! `[embed]`: pictures become vectors before anything is trained on them.

use crate::Location;
use crate::Normalise;
use crate::section::Section;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

/// More pictures at a time only take memory.
const MAX_BATCH: usize = 4096;
/// A part is in memory as a whole before it is written: some 50 MB of the longest vectors.
const MAX_PART: usize = 10_000;

/// Pictures become vectors before anything is trained on them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Embed {
    /// The encoder: a folder with `config.json` and `model.safetensors` as Hugging Face has them for
    /// CLIP, a safetensors file of such weights, or the weights of an EfficientNet-Lite.
    pub model: PathBuf,
    /// Pictures that a worker encodes at a time.
    #[serde(default = "batch")]
    #[schemars(range(min = 1))]
    pub batch: usize,
    /// The folder that the vectors go to, as Parquet files: `train`, `val` and `test` in it.
    pub store: Location,
    /// Pictures in one Parquet file, which is also what a crash loses at most for every worker.
    #[serde(default = "part")]
    #[schemars(range(min = 1))]
    pub part: usize,
    /// Normalisation of the pixels; if left out, that of the encoder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub normalise: Option<Normalise>,
}

fn batch() -> usize {
    16
}

fn part() -> usize {
    512
}

impl Embed {
    /// A name for the vectors of the pictures in `folder`, one that no other folder and no other
    /// settings have.
    pub fn name_for(&self, folder: &Location) -> String {
        let readable = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let last = folder.as_str().rsplit('/').next().unwrap_or_default();
        let mut hash = DefaultHasher::new();
        (folder.as_str(), &self.model, self.part).hash(&mut hash);
        let last: String = last.chars().take(40).map(readable).collect();
        format!("{last}-{:016x}", hash.finish())
    }

    pub(crate) fn read(mut section: Section<'_>) -> Option<Embed> {
        let model = section
            .need(
                "model",
                "add `model = \"...\"`, the encoder's folder or file",
            )
            .and_then(|field| field.path());
        let batch = section.or("batch", batch(), |field| field.integer(1..=MAX_BATCH));
        let store = section
            .need("store", "add `store = \"...\"`, the folder for the vectors")
            .and_then(|field| Location::read(&field));
        let part = section.or("part", part(), |field| field.integer(1..=MAX_PART));
        let normalise = section.maybe("normalise", |field| Normalise::read(&field));
        section.finish();
        Some(Embed {
            model: model?,
            batch: batch?,
            store: store?,
            part: part?,
            normalise: normalise?,
        })
    }
}
