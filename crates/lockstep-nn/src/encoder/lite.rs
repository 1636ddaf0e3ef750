//! The shapes of EfficientNet-Lite: its variants, and the blocks that each of them has.

use super::EncoderError;
use super::depthwise::same;

/// Features of a picture.
pub const FEATURES: usize = 1280;

/// Channels after the first convolution.
pub const STEM: usize = 32;

/// Pixels of a side of the first convolution's windows, and from one to the next.
pub(super) const STEM_KERNEL: usize = 3;
/// As above.
pub(super) const STEM_STRIDE: usize = 2;

/// What keeps a variance from being zero, in TensorFlow's EfficientNets.
pub const EPSILON: f64 = 1e-3;

/// The mean that pictures were trained with, a channel, with pixels from 0 to 1 (127 of 255).
pub const LITE_MEAN: [f32; 3] = [127.0 / 255.0; 3];

/// The deviation that they were trained with (128 of 255).
pub const LITE_STD: [f32; 3] = [128.0 / 255.0; 3];

/// Blocks of a kind, before scaling: how many, kernel, stride of the first, widening, channels.
const STAGES: [(usize, usize, usize, usize, usize); 7] = [
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
];

/// Width and depth, in tenths, and pixels of a side of EfficientNet-Lite 0, 1 and 2.
const VARIANTS: [(usize, usize, usize); 3] = [(10, 10, 224), (10, 11, 240), (11, 12, 260)];

/// Pixels of a picture's side for a variant; `None` when there is no such variant.
pub fn lite_image_size(variant: u32) -> Option<usize> {
    VARIANTS.get(variant as usize).map(|&(_, _, side)| side)
}

/// The windows of a convolution over a square picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiteConvolution {
    /// Pixels of a window's side.
    pub kernel: usize,
    /// Pixels from one window to the next.
    pub stride: usize,
    /// Lines of zeros before the picture and behind it, in both directions.
    pub margin: [usize; 2],
}

/// A block of an EfficientNet-Lite; `_blocks.0` and so on are its tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiteBlock {
    /// How often the channels are widened inside; once is not at all.
    pub widening: usize,
    /// Channels inside.
    pub inner: usize,
    /// Channels that come out.
    pub outputs: usize,
    /// The convolution of each channel by itself.
    pub depthwise: LiteConvolution,
    /// Whether the input is added to the output.
    pub skip: bool,
}

impl LiteConvolution {
    /// With TensorFlow's "same" margin on pictures of `side` pixels; and the side of what comes out.
    fn same(side: usize, kernel: usize, stride: usize) -> (Self, usize) {
        let (output, before) = same(side, kernel, stride);
        let all = ((output - 1) * stride + kernel).saturating_sub(side);
        let margin = [before, all - before];
        let own = Self {
            kernel,
            stride,
            margin,
        };
        (own, output)
    }
}

/// The first convolution of a variant, and its blocks in their order.
///
/// # Errors
/// When there is no such variant.
pub fn lite_blocks(variant: u32) -> Result<(LiteConvolution, Vec<LiteBlock>), EncoderError> {
    let &(width, depth, side) = VARIANTS
        .get(variant as usize)
        .ok_or(EncoderError::Variant { found: variant })?;
    let (stem, mut side) = LiteConvolution::same(side, STEM_KERNEL, STEM_STRIDE);
    let mut channels = STEM;
    let mut blocks = Vec::new();
    for (i, &(count, kernel, stride, widening, outputs)) in STAGES.iter().enumerate() {
        // The first and the last stage are not made deeper, the stem and the head not wider.
        let count = match i {
            0 | 6 => count,
            _ => (count * depth).div_ceil(10),
        };
        for repeat in 0..count {
            let stride = if repeat == 0 { stride } else { 1 };
            let outputs = scaled(outputs, width);
            let (depthwise, after) = LiteConvolution::same(side, kernel, stride);
            blocks.push(LiteBlock {
                widening,
                inner: channels * widening,
                outputs,
                depthwise,
                skip: stride == 1 && channels == outputs,
            });
            (channels, side) = (outputs, after);
        }
    }
    Ok((stem, blocks))
}

/// Channels scaled in width, to a multiple of 8 that is not less than nine tenths.
fn scaled(channels: usize, width: usize) -> usize {
    let exact = channels * width;
    let rounded = ((exact + 40) / 80 * 8).max(8);
    match 10 * rounded * 10 < 9 * exact {
        true => rounded + 8,
        false => rounded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_scaled_as_the_reference_scales_them() {
        let widths = [16, 24, 40, 80, 112, 192, 320];
        assert_eq!(widths.map(|c| scaled(c, 10)), widths);
        assert_eq!(
            widths.map(|c| scaled(c, 11)),
            [16, 24, 48, 88, 120, 208, 352]
        );
    }
}
