//! The encoder's weights: which encoder they are of, and what it expects of a picture.

use crate::EmbedError;
use crate::known;
use lockstep_base::known_encoders::EncoderRef;
use lockstep_image::{Filter, Normalise, Transform};
use lockstep_nn::Threads;
use lockstep_nn::encoder::{
    CLIP_MEAN, CLIP_STD, ClipConfig, Encoder, EncoderError, EncoderParts, LITE_MEAN, LITE_STD,
    lite_image_size,
};
use lockstep_tensors::TensorFile;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// The first tensor of each encoder.
const CLIP_TENSOR: &str = "vision_model.embeddings.patch_embedding.weight";
const LITE_TENSOR: &str = "_conv_stem.weight";

/// Which encoder a file of weights is of.
#[derive(Debug, Clone, PartialEq)]
pub enum EncoderKind {
    /// The image half of a CLIP.
    Clip(ClipConfig),
    /// An EfficientNet-Lite, by its number.
    EfficientNetLite(u32),
}

impl EncoderKind {
    /// What a person calls it.
    pub fn name(&self) -> String {
        match self {
            EncoderKind::Clip(config) => format!("this CLIP (patches of {})", config.patch_size),
            EncoderKind::EfficientNetLite(variant) => format!("EfficientNet-Lite{variant}"),
        }
    }
}

/// An encoder that can be built.
#[derive(Debug)]
pub struct EncoderModel {
    /// Which it is.
    pub encoder_ref: EncoderRef,
    /// Its folder or file.
    pub path: PathBuf,
    /// Which encoder it is.
    pub kind: EncoderKind,
    /// A hash of its weights and configuration.
    pub sha256: String,
    /// Height and width of its pictures.
    pub image_size: [u32; 2],
    /// What it expects to have been done to them.
    pub transform: Transform,
    /// The scale of their pixels.
    pub normalise: Normalise,
    tensors: TensorFile,
}

impl EncoderModel {
    /// Finds the encoder, and opens its weights. One that is known by name is brought if it is not here, of which
    /// `progress` hears.
    ///
    /// # Errors
    /// When the weights cannot be had or read, or are of no kind of encoder that there is.
    pub fn open(
        encoder: &EncoderRef,
        progress: &mut dyn FnMut(&str),
    ) -> Result<EncoderModel, EmbedError> {
        let path = &known::locate(encoder, progress)?;
        if !path.exists() {
            return Err(EmbedError::NoModel {
                path: path.clone(),
                known: known::names(),
            });
        }
        let tensors = TensorFile::open(path)?;
        if let EncoderRef::Known(known) = encoder {
            let found = tensors.sha256();
            if found != known.sha256 {
                return Err(EmbedError::DamagedEncoder {
                    path: path.clone(),
                    wanted: known.sha256,
                    found,
                });
            }
        }
        let of_model = |reason: String| EmbedError::Model {
            path: path.to_owned(),
            reason,
        };
        let mut hash = Sha256::new();
        hash.update(tensors.sha256());
        let has = |tensor| tensors.shape(tensor).is_some();
        let kind = if has(CLIP_TENSOR) {
            let config = config_beside(path).map_err(of_model)?;
            hash.update(config.as_deref().unwrap_or_default());
            let config = config.map_or_else(
                || Ok(ClipConfig::default()),
                |text| ClipConfig::from_json(&text),
            );
            EncoderKind::Clip(config.map_err(refused(path))?)
        } else if has(LITE_TENSOR) {
            EncoderKind::EfficientNetLite(lite_variant(&tensors))
        } else {
            let first = tensors.names().next().unwrap_or("nothing").to_owned();
            return Err(of_model(format!(
                "these are the weights of no encoder that is known; a CLIP has `{CLIP_TENSOR}`, an \
                 EfficientNet-Lite has `{LITE_TENSOR}`, and this has `{first}`"
            )));
        };
        let (side, resize, normalise, filter) = match &kind {
            EncoderKind::Clip(config) => {
                let scale = Normalise {
                    mean: CLIP_MEAN,
                    std: CLIP_STD,
                };
                (config.image_size, config.image_size, scale, Filter::Bicubic)
            }
            EncoderKind::EfficientNetLite(variant) => {
                let side = lite_image_size(*variant).unwrap_or(224);
                let scale = Normalise {
                    mean: LITE_MEAN,
                    std: LITE_STD,
                };
                // Its pictures were cut out of ones that were larger by 32 pixels.
                (side, side + 32, scale, Filter::Bicubic)
            }
        };
        let pixels = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
        Ok(EncoderModel {
            encoder_ref: encoder.clone(),
            path: path.clone(),
            kind,
            sha256: lockstep_base::fs::hex::encode(hash.finalize()),
            image_size: [pixels(side); 2],
            transform: Transform {
                resize: Some(pixels(resize)),
                crop: Some([pixels(side); 2]),
                filter,
                ..Transform::default()
            },
            normalise,
            tensors,
        })
    }

    /// Builds the encoder for so many pictures at a time.
    ///
    /// # Errors
    /// When a tensor is missing or has another shape than the encoder's.
    pub fn encoder(&self, rows: usize) -> Result<Encoder, EmbedError> {
        Ok(Encoder::new(&Threads::default(), self.parts()?, rows))
    }

    /// All numbers of the encoder.
    ///
    /// # Errors
    /// When a tensor is missing or has another shape than the encoder's.
    pub fn parts(&self) -> Result<EncoderParts, EmbedError> {
        let mut read = |name: &str, shape: &[usize]| self.tensor(name, shape);
        match &self.kind {
            EncoderKind::Clip(config) => EncoderParts::clip(config, &mut read),
            EncoderKind::EfficientNetLite(variant) => {
                EncoderParts::efficientnet_lite(*variant, &mut read)
            }
        }
        .map_err(refused(&self.path))
    }

    /// The numbers of one of its tensors, the last index running fastest.
    ///
    /// # Errors
    /// When it is missing or has another shape.
    pub fn read(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, EmbedError> {
        self.tensor(name, shape).map_err(refused(&self.path))
    }

    fn tensor(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, EncoderError> {
        let wrong = |reason: String| EncoderError::Tensor {
            name: name.to_owned(),
            reason,
        };
        if let Some(found) = self.tensors.shape(name).filter(|found| *found != shape) {
            return Err(wrong(format!(
                "its shape is {found:?}, and {shape:?} is needed"
            )));
        }
        let numbers = self.tensors.read(name);
        numbers.map_err(|error| wrong(error.to_string()))
    }
}

fn refused(path: &Path) -> impl Fn(EncoderError) -> EmbedError {
    move |source| EmbedError::Encoder {
        path: path.to_owned(),
        source,
    }
}

/// The text of `config.json` in the model's folder, or beside its file. A folder must have one.
fn config_beside(path: &Path) -> Result<Option<String>, String> {
    let folder = path.is_dir();
    let file = match folder {
        true => path.join("config.json"),
        false => path.with_file_name("config.json"),
    };
    match std::fs::read_to_string(&file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !folder => Ok(None),
        Err(error) => Err(format!(
            "config.json, which says how large the model is: {error}"
        )),
    }
}

/// Lite1 and Lite2 are deeper than Lite0, and Lite2 is wider than both.
fn lite_variant(tensors: &TensorFile) -> u32 {
    let last = |block: u32| format!("_blocks.{block}._project_conv.weight");
    match tensors.shape(&last(20)) {
        None => 0,
        Some([320, ..]) => 1,
        Some(_) => 2,
    }
}
