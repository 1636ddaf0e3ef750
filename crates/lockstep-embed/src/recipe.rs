//! How a picture becomes a vector.

use crate::{EmbedError, EncoderModel};
use lockstep_base::known_encoders::EncoderRef;
use lockstep_cuda::DeviceChoice;
use lockstep_image::{Normalise, Transform};
use lockstep_nn::Precision;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Grows when the same recipe no longer gives the same vectors.
const VERSION: u32 = 1;

/// All that decides what a picture's vector is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmbedRecipe {
    /// The encoder. Where it lies decides nothing.
    pub model: EncoderRef,
    /// A hash of its weights and its configuration.
    pub model_sha256: String,
    /// What becomes of a picture before the encoder sees it.
    pub transform: Transform,
    /// The scale of its pixels.
    pub normalise: Normalise,
    /// How the encoder's products are computed.
    #[serde(default)]
    pub precision: Precision,
}

impl EmbedRecipe {
    /// The recipe of a model, with its own transform and scale unless others are given.
    ///
    /// # Errors
    /// When the pictures would come out in another size than the encoder's.
    pub fn new(
        model: &EncoderModel,
        transform: Option<Transform>,
        normalise: Option<Normalise>,
    ) -> Result<EmbedRecipe, EmbedError> {
        let transform = transform.unwrap_or_else(|| model.transform.clone());
        let output = transform.output().map_err(EmbedError::Image)?;
        let wanted = model.image_size;
        if output != wanted {
            return Err(EmbedError::Transform(format!(
                "pictures come out with {} x {} pixels, and {} takes {} x {}",
                output[0],
                output[1],
                model.kind.name(),
                wanted[0],
                wanted[1]
            )));
        }
        Ok(EmbedRecipe {
            model: model.encoder_ref.clone(),
            model_sha256: model.sha256.clone(),
            transform,
            normalise: normalise.unwrap_or(model.normalise),
            precision: Precision::default(),
        })
    }

    /// The same in a precision, on such a device.
    ///
    /// # Errors
    /// When the device cannot compute in it.
    pub fn in_precision(
        self,
        precision: Precision,
        device: DeviceChoice,
    ) -> Result<Self, EmbedError> {
        match (precision, device) {
            (Precision::Fixed16, DeviceChoice::Cuda(_)) => Err(EmbedError::PrecisionOnGpu),
            _ => Ok(Self { precision, ..self }),
        }
    }

    /// A hash that begins with all of the recipe, and goes on with the pictures of a part.
    pub(crate) fn hash(&self) -> Sha256 {
        let mut hash = Sha256::new();
        let scale = [self.normalise.mean, self.normalise.std];
        let precision = match self.precision {
            Precision::F32 => String::new(),
            other => format!(" {}", other.name()),
        };
        let words = format!(
            "{VERSION} {} {:?} {:?}{precision}",
            self.model_sha256,
            self.transform,
            scale.map(|numbers| numbers.map(f32::to_bits))
        );
        hash.update((words.len() as u64).to_le_bytes());
        hash.update(words);
        hash
    }
}
