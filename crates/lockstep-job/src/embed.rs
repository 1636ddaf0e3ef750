//! `[embed]`: pictures become vectors before anything is trained on them.

use crate::field::Field;
use crate::keys::{Any, FromField, keys};
use crate::{JobDevice, JobNormalise, JobPrecision, Location};
use lockstep_base::known_encoders::EncoderRef;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

/// More pictures at a time only take memory.
const MAX_BATCH: usize = 4096;
/// A part is in memory as a whole before it is written: some 50 MB of the longest vectors.
const MAX_PART: usize = 10_000;

keys! {
    /// Pictures become vectors before anything is trained on them.
    pub struct Embed {
        /// The encoder: the name of a known one such as `efficientnet-lite0`, a folder with `config.json` and
        /// `model.safetensors` as Hugging Face has them for CLIP, a safetensors file of such weights, or the
        /// weights of an EfficientNet-Lite.
        model: EncoderRef as PathBuf = need("add `model = \"...\"`, the encoder's name, folder or file") => Any;
        /// Pictures that a worker encodes at a time.
        batch: usize = default(16) => 1..=MAX_BATCH;
        /// What the encoder is computed on: a GPU, the processor, or a GPU if there is one. It changes no vector.
        device: JobDevice = default(JobDevice::Auto) => Any;
        /// How products are computed: `"f32"`, or `"fixed16"`, which is faster on processors with AMX and has the same bits
        /// on all. It changes the vectors a little. A GPU cannot do it.
        #[serde(default)]
        precision: JobPrecision = hidden(JobPrecision::default()) => Any;
        /// The folder that the vectors go to, as Parquet files: `train`, `val` and `test` in it.
        store: Location = need("add `store = \"...\"`, the folder for the vectors") => Any;
        /// Pictures in one Parquet file, which is also what a crash loses at most for every worker.
        part: usize = default(512) => 1..=MAX_PART;
        /// Normalisation of the pixels; if left out, that of the encoder.
        normalise: Option<JobNormalise> = optional => Any;
    }
}

impl FromField for EncoderRef {
    fn from_field(field: &Field<'_>) -> Option<Self> {
        let known = EncoderRef::known(field.text()?);
        known.or_else(|| field.path().map(EncoderRef::Path))
    }
}

impl Embed {
    /// A name for the vectors of the pictures in `folder`, one that no other folder and no other
    /// settings have.
    pub fn name_for(&self, folder: &Location) -> String {
        let readable = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let last = folder.as_str().rsplit('/').next().unwrap_or_default();
        let mut hash = DefaultHasher::new();
        (folder.as_str(), &self.model, self.part).hash(&mut hash);
        if self.precision != JobPrecision::default() {
            self.precision.word().hash(&mut hash);
        }
        let last: String = last.chars().take(40).map(readable).collect();
        format!("{last}-{:016x}", hash.finish())
    }
}
