//! How pictures become the samples of a network, as a trained model keeps it.

use lockstep_base::known_encoders::EncoderRef;
use lockstep_image::{Normalise, Transform};
use serde::{Deserialize, Serialize};

/// How pictures become samples. A model that is shown pictures of another kind predicts nonsense, so it keeps this.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PictureInput {
    /// What is done to every picture.
    pub transform: Transform,
    /// What makes vectors of them, if something does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoder: Option<EncoderInput>,
}

/// The encoder that made vectors of pictures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EncoderInput {
    /// Its name, or where it lay.
    pub model: EncoderRef,
    /// A hash of its weights and its configuration.
    pub sha256: String,
    /// The scale of the pixels.
    pub normalise: Normalise,
}
