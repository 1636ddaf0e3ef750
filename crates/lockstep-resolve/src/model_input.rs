//! What the job of a run says of what its network takes.

use crate::ResolveError;
use crate::embedding::image_normalise;
use crate::sources::image_transform;
use lockstep_base::known_encoders::EncoderRef;
use lockstep_image::{Normalise, Transform};
use lockstep_job::{Job, JobError, Override};
use serde_json::{Value, json};
use std::path::Path;

/// What the network of a run takes, as far as only its job says so.
#[derive(Debug, Clone)]
pub struct ModelInput {
    /// What is done to pictures, if anything is.
    pub transform: Option<Transform>,
    /// What makes vectors of them first, if something does.
    pub encoder: Option<InputEncoder>,
    /// The columns of the table that was trained on, as the job file names them, if it does.
    pub features: Option<Value>,
}

/// What makes vectors of pictures.
#[derive(Debug, Clone)]
pub struct InputEncoder {
    /// The encoder.
    pub model: EncoderRef,
    /// The scale of the pixels, if not that of the encoder.
    pub normalise: Option<Normalise>,
}

impl ModelInput {
    /// Reads the job file of a run, some of whose keys are set otherwise: `key=value` each.
    ///
    /// # Errors
    /// When the file cannot be read, or the job trains no network.
    pub fn load(file: &Path, set: &[String]) -> Result<Self, ResolveError> {
        let set = set.iter().map(|text| text.parse());
        let overrides: Vec<Override> = set.collect::<Result<_, _>>()?;
        let job = Job::load(file, &overrides, None)?;
        let network = job.network(file).map_err(|error| match error {
            JobError::Script { .. } => ResolveError::ScriptModel,
            _ => ResolveError::TreesModel,
        })?;
        let data = job.data.as_ref();
        let columns = data.and_then(|data| data.train.columns());
        let features = columns.and_then(|columns| columns.features.as_ref());
        Ok(Self {
            transform: data.and_then(image_transform),
            encoder: network.embed.as_ref().map(|embed| InputEncoder {
                model: embed.model.clone(),
                normalise: image_normalise(embed),
            }),
            features: features.map(|features| json!(features)),
        })
    }
}
