//! The numbers of EfficientNet-Lite, with batch normalisation folded into the convolutions before it.

use super::EncoderError;
use super::lite::{
    EPSILON, FEATURES, LiteBlock, LiteConvolution, STEM, STEM_KERNEL, lite_blocks, lite_image_size,
};
use super::parts::{DenseParts, WindowParts, windows};
use super::weights::Weights;
use crate::layers::linear::transpose;

/// All numbers of an EfficientNet-Lite without its classifier.
#[derive(Debug, Clone, PartialEq)]
pub struct LiteParts {
    /// Pixels of a picture's side.
    pub side: usize,
    /// The first convolution: its windows, and its numbers.
    pub stem_shape: LiteConvolution,
    /// As above.
    pub stem: WindowParts,
    /// The blocks in their order.
    pub blocks: Vec<LiteBlockParts>,
    /// What makes the features of each pixel, before these are averaged.
    pub head: DenseParts,
}

/// A block.
#[derive(Debug, Clone, PartialEq)]
pub struct LiteBlockParts {
    /// Its shape.
    pub shape: LiteBlock,
    /// What widens the channels, if they are widened.
    pub expand: Option<DenseParts>,
    /// The convolution of each channel by itself.
    pub depthwise: WindowParts,
    /// What narrows them again.
    pub project: DenseParts,
}

impl LiteParts {
    pub(super) fn read(variant: u32, weights: &mut Weights<'_>) -> Result<Self, EncoderError> {
        let side = lite_image_size(variant).ok_or(EncoderError::Variant { found: variant })?;
        let shape = [STEM, 3, STEM_KERNEL, STEM_KERNEL];
        let (weight, bias) = folded(weights, ["_conv_stem", "_bn0"], &shape)?;
        let stem = WindowParts {
            weight: windows(&weight, STEM, STEM_KERNEL * STEM_KERNEL),
            bias,
        };
        let (mut channels, mut blocks) = (STEM, Vec::new());
        let (stem_shape, shapes) = lite_blocks(variant)?;
        for (i, shape) in shapes.into_iter().enumerate() {
            let block = LiteBlockParts::read(weights, &format!("_blocks.{i}"), channels, shape)?;
            channels = shape.outputs;
            blocks.push(block);
        }
        let head = folded(weights, ["_conv_head", "_bn1"], &[FEATURES, channels, 1, 1])?;
        Ok(Self {
            side,
            stem_shape,
            stem,
            blocks,
            head: pixels(channels, head),
        })
    }
}

impl LiteBlockParts {
    fn read(
        weights: &mut Weights<'_>,
        name: &str,
        channels: usize,
        shape: LiteBlock,
    ) -> Result<Self, EncoderError> {
        let (inner, kernel) = (shape.inner, shape.depthwise.kernel);
        let mut folded = |names: [&str; 2], shape: [usize; 4]| {
            let names = names.map(|part| format!("{name}.{part}"));
            folded(weights, names.each_ref().map(String::as_str), &shape)
        };
        let expand = match shape.widening {
            1 => None,
            _ => Some(folded(["_expand_conv", "_bn0"], [inner, channels, 1, 1])?),
        };
        let (weight, bias) = folded(["_depthwise_conv", "_bn1"], [inner, 1, kernel, kernel])?;
        let mut turned = vec![0.0; weight.len()];
        transpose(&weight, kernel * kernel, &mut turned);
        let project = folded(["_project_conv", "_bn2"], [shape.outputs, inner, 1, 1])?;
        Ok(Self {
            shape,
            expand: expand.map(|folded| pixels(channels, folded)),
            depthwise: WindowParts {
                weight: turned,
                bias,
            },
            project: pixels(inner, project),
        })
    }
}

/// A convolution of single pixels.
fn pixels(inputs: usize, (weight, bias): (Vec<f32>, Vec<f32>)) -> DenseParts {
    DenseParts {
        inputs,
        weight,
        bias,
    }
}

/// A convolution's weights and biases with the batch normalisation after it folded in.
fn folded(
    weights: &mut Weights<'_>,
    [conv, norm]: [&str; 2],
    shape: &[usize],
) -> Result<(Vec<f32>, Vec<f32>), EncoderError> {
    let outputs = shape[0];
    let mut weight = weights.take(&format!("{conv}.weight"), shape)?;
    let mut part = |name: &str| weights.take(&format!("{norm}.{name}"), &[outputs]);
    let (scale, shift) = (part("weight")?, part("bias")?);
    let (mean, variance) = (part("running_mean")?, part("running_var")?);
    let mut bias = Vec::with_capacity(outputs);
    let each = weight.len() / outputs;
    for (i, weight) in weight.chunks_exact_mut(each).enumerate() {
        let factor = f64::from(scale[i]) / (f64::from(variance[i]) + EPSILON).sqrt();
        for weight in weight {
            *weight = (f64::from(*weight) * factor) as f32;
        }
        bias.push((f64::from(shift[i]) - f64::from(mean[i]) * factor) as f32);
    }
    Ok((weight, bias))
}
