//! EfficientNet-Lite without its classifier: 1,280 features of a picture.
//!
//! Blocks widen the channels, convolve each by itself, and narrow them again; there is no
//! squeeze-and-excitation in the Lite variants. Batch normalisation is folded into the convolutions when
//! the weights are read. Pictures are large and cheap at first, small and wide later: the first blocks
//! run picture by picture, in the cache, and the rest on all pictures together, so that their weights are
//! read once.

use super::activation::relu6;
use super::dense::{After, Dense};
use super::depthwise::{Depthwise, same};
use super::weights::Weights;
use super::{EncoderError, square};
use crate::buffer::Buffer;
use crate::dims::Dims;
use crate::gemm::{Accumulate, Left, Shape, Span, Walk, nested};
use crate::layers::{carve, carved};
use crate::simd::for_each_isa;
use crate::threads::{Threads, pieces, pieces_mut};

/// Features of a picture.
pub const FEATURES: usize = 1280;

/// Channels after the first convolution.
pub const STEM: usize = 32;

/// What keeps a variance from being zero, in TensorFlow's EfficientNets.
pub const EPSILON: f64 = 1e-3;

/// The mean that pictures were trained with, a channel, with pixels from 0 to 1 (127 of 255).
pub const LITE_MEAN: [f32; 3] = [127.0 / 255.0; 3];

/// The deviation that they were trained with (128 of 255).
pub const LITE_STD: [f32; 3] = [128.0 / 255.0; 3];

/// Blocks run picture by picture while a picture has more pixels than this.
const SMALL: usize = 20 * 20;

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
    let (stem, mut side) = LiteConvolution::same(side, Stem::KERNEL, Stem::STRIDE);
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

/// An inverted bottleneck.
struct Bottleneck {
    input: Dims,
    output: Dims,
    expand: Option<Dense>,
    depthwise: Depthwise,
    project: Dense,
    /// Whether the input is added to the output.
    skip: bool,
}

/// The network and its buffers.
pub(super) struct EfficientNet {
    input: Dims,
    stem: Stem,
    /// How many of the blocks run picture by picture.
    early: usize,
    blocks: Vec<Bottleneck>,
    head: Dense,
    /// What goes in and out of a block; they change places.
    flow: [Buffer; 2],
    /// What is inside of a block: widened, and convolved.
    inner: [Buffer; 2],
    /// The same of one picture in the early blocks, behind the picture with its margin, for each thread.
    rooms: Buffer,
    /// Numbers of all these.
    room: [usize; 5],
}

impl EfficientNet {
    pub(super) fn new(
        threads: &Threads,
        variant: u32,
        weights: &mut Weights<'_>,
        rows: usize,
    ) -> Result<Self, EncoderError> {
        let side = lite_image_size(variant).ok_or(EncoderError::Variant { found: variant })?;
        let input = square(side);
        let stem = Stem::new(input, weights)?;
        let mut dims = stem.output;
        let mut blocks = Vec::new();
        for (i, block) in lite_blocks(variant)?.1.iter().enumerate() {
            let block = Bottleneck::new(weights, &format!("_blocks.{i}"), dims, block)?;
            dims = block.output;
            blocks.push(block);
        }
        let (weight, bias) = folded(
            weights,
            "_conv_head",
            "_bn1",
            &[FEATURES, dims.channels, 1, 1],
        )?;
        let head = Dense::new(dims.channels, &weight, &bias, After::Relu6);
        let small = |block: &Bottleneck| block.output.pixels() <= SMALL;
        let early = blocks.iter().position(small).map_or(0, |first| first + 1);
        // A buffer is as large as the largest of what it ever holds.
        let most = |blocks: &[Bottleneck], size: &dyn Fn(&Bottleneck) -> usize| {
            blocks.iter().map(size).max().unwrap_or(0)
        };
        let expanded = |block: &Bottleneck| block.input.pixels() * block.inner();
        let convolved = |block: &Bottleneck| block.output.pixels() * block.inner();
        let made = |block: &Bottleneck| block.output.len();
        let (alone, together) = blocks.split_at(early);
        let flow = most(alone, &made).max(stem.output.len());
        let inner = [most(alone, &expanded), most(alone, &convolved)];
        let room = [stem.padded.len(), flow, flow, inner[0], inner[1]];
        let length = room.map(carved).iter().sum();
        // The early blocks' outputs for all pictures come first.
        let flow = most(together, &made).max(blocks[early - 1].output.len());
        let pooled = dims.pixels() * FEATURES;
        let inner = [
            most(together, &expanded).max(pooled),
            most(together, &convolved),
        ];
        Ok(Self {
            input,
            stem,
            early,
            blocks,
            head,
            flow: [Buffer::large(rows * flow), Buffer::large(rows * flow)],
            inner: inner.map(|numbers| Buffer::large(rows * numbers)),
            rooms: Buffer::large(threads.rooms(length, rows)),
            room,
        })
    }

    pub(super) fn input(&self) -> Dims {
        self.input
    }

    /// The features of at most as many pictures as there are buffers for.
    pub(super) fn encode(&mut self, threads: &Threads, images: &[f32], out: &mut [f32]) {
        let rows = images.len() / self.input.len();
        let (early, late) = self.blocks.split_at(self.early);
        let share = early[early.len() - 1].output.len();
        let [from, to] = &mut self.flow;
        let (mut from, mut to) = (&mut from[..], &mut to[..]);
        let (stem, room) = (&self.stem, self.room);
        let length = room.map(carved).iter().sum();
        let pictures = pieces(images, self.input.len());
        let tiles = (pictures, pieces_mut(&mut from[..rows * share], share));
        threads.each_in(
            &mut self.rooms,
            length,
            tiles,
            |rest, _, (image, gathered)| {
                let (padded, rest) = carve(rest, room[0]);
                let (mut from, rest) = carve(rest, room[1]);
                let (mut to, rest) = carve(rest, room[2]);
                let (widened, rest) = carve(rest, room[3]);
                let (convolved, _) = carve(rest, room[4]);
                stem.run(image, padded, from);
                for block in early {
                    lockstep_base::progress::advance();
                    block.run(threads, 1, from, to, [&mut *widened, &mut *convolved]);
                    std::mem::swap(&mut from, &mut to);
                }
                gathered.copy_from_slice(&from[..share]);
            },
        );
        let [widened, convolved] = &mut self.inner;
        for block in late {
            lockstep_base::progress::advance();
            block.run(threads, rows, from, to, [&mut *widened, &mut *convolved]);
            std::mem::swap(&mut from, &mut to);
        }
        let last = late.last().unwrap_or(&early[early.len() - 1]).output;
        let numbers = last.pixels() * FEATURES;
        let wide = &mut widened[..rows * numbers];
        self.head.run(threads, &from[..rows * last.len()], wide);
        let tiles = (pieces(wide, numbers), pieces_mut(out, FEATURES));
        threads.each(tiles, |_, (wide, out)| pool(last.pixels(), wide, out));
    }
}

for_each_isa! {
    /// The average of each feature over all pixels.
    fn pool(pixels: usize, x: &[f32], y: &mut [f32]) {
        let share = 1.0 / pixels as f32;
        for (x, y) in x.chunks_exact(pixels * FEATURES).zip(y.chunks_exact_mut(FEATURES)) {
            y.fill(0.0);
            for pixel in x.chunks_exact(FEATURES) {
                for (y, x) in y.iter_mut().zip(pixel) {
                    *y += x;
                }
            }
            for y in y {
                *y *= share;
            }
        }
    }
}

impl Bottleneck {
    fn new(
        weights: &mut Weights<'_>,
        name: &str,
        input: Dims,
        block: &LiteBlock,
    ) -> Result<Self, EncoderError> {
        let &LiteBlock {
            inner,
            outputs,
            skip,
            ..
        } = block;
        let LiteConvolution { kernel, stride, .. } = block.depthwise;
        let mut folded = |conv: &str, norm: &str, shape: [usize; 4]| {
            folded(
                weights,
                &format!("{name}.{conv}"),
                &format!("{name}.{norm}"),
                &shape,
            )
        };
        let expand = match block.widening {
            1 => None,
            _ => {
                let shape = [inner, input.channels, 1, 1];
                let (weight, bias) = folded("_expand_conv", "_bn0", shape)?;
                Some(Dense::new(input.channels, &weight, &bias, After::Relu6))
            }
        };
        let (weight, bias) = folded("_depthwise_conv", "_bn1", [inner, 1, kernel, kernel])?;
        let widened = Dims {
            channels: inner,
            ..input
        };
        let depthwise = Depthwise::new(widened, kernel, stride, &weight, &bias);
        let (weight, bias) = folded("_project_conv", "_bn2", [outputs, inner, 1, 1])?;
        let after = if skip { After::Add } else { After::Nothing };
        Ok(Self {
            input,
            output: Dims {
                channels: outputs,
                ..depthwise.output()
            },
            expand,
            depthwise,
            project: Dense::new(inner, &weight, &bias, after),
            skip,
        })
    }

    /// Channels inside.
    fn inner(&self) -> usize {
        self.depthwise.output().channels
    }

    fn run(
        &self,
        threads: &Threads,
        rows: usize,
        x: &[f32],
        y: &mut [f32],
        [widened, convolved]: [&mut [f32]; 2],
    ) {
        let x = &x[..rows * self.input.len()];
        let y = &mut y[..rows * self.output.len()];
        let convolved = &mut convolved[..rows * self.depthwise.output().len()];
        match &self.expand {
            Some(expand) => {
                let widened = &mut widened[..rows * self.input.pixels() * self.inner()];
                expand.run(threads, x, widened);
                self.depthwise.run(threads, widened, convolved);
            }
            None => self.depthwise.run(threads, x, convolved),
        }
        if self.skip {
            y.copy_from_slice(x);
        }
        self.project.run(threads, convolved, y);
    }
}

/// The first convolution: 3 x 3 pixels, 2 apart.
struct Stem {
    input: Dims,
    output: Dims,
    /// Lines x columns x channels x outputs.
    weight: Buffer,
    bias: Buffer,
    /// The shape of a picture with its margin, below it and to its right or all around.
    padded: Dims,
    margin: usize,
}

impl Stem {
    const KERNEL: usize = 3;
    const STRIDE: usize = 2;

    fn new(input: Dims, weights: &mut Weights<'_>) -> Result<Self, EncoderError> {
        let shape = [STEM, 3, Self::KERNEL, Self::KERNEL];
        let (from, bias) = folded(weights, "_conv_stem", "_bn0", &shape)?;
        let area = Self::KERNEL * Self::KERNEL;
        let mut weight = Buffer::zeros(from.len());
        for output in 0..STEM {
            for channel in 0..3 {
                for place in 0..area {
                    weight[(place * 3 + channel) * STEM + output] =
                        from[(output * 3 + channel) * area + place];
                }
            }
        }
        let (side, margin) = same(input.width, Self::KERNEL, Self::STRIDE);
        let padded = (side - 1) * Self::STRIDE + Self::KERNEL;
        Ok(Self {
            input,
            output: Dims {
                channels: STEM,
                ..square(side)
            },
            weight,
            bias: Buffer::from(&bias[..]),
            padded: square(padded.max(input.width + margin)),
            margin,
        })
    }

    /// Computes a picture, with room for the same with its margin.
    fn run(&self, image: &[f32], room: &mut [f32], y: &mut [f32]) {
        let line = 3 * self.input.width;
        let padded = 3 * self.padded.width;
        room.fill(0.0);
        let lines = room.chunks_exact_mut(padded).skip(self.margin);
        for (to, from) in lines.zip(image.chunks_exact(line)) {
            to[3 * self.margin..][..line].copy_from_slice(from);
        }
        let y = &mut y[..self.output.len()];
        for pixel in y.chunks_exact_mut(STEM) {
            pixel.copy_from_slice(&self.bias);
        }
        let shape = Shape {
            rows: Span {
                outer: 1,
                middle: self.output.height,
                inner: self.output.width,
            },
            columns: STEM,
            depth: Span {
                outer: 1,
                middle: Self::KERNEL,
                inner: Self::KERNEL * 3,
            },
        };
        let windows = Left {
            data: room,
            rows: Walk {
                outer: 0,
                middle: Self::STRIDE * padded,
                inner: Self::STRIDE * 3,
            },
            depth: Walk {
                outer: 0,
                middle: padded,
                inner: 1,
            },
        };
        let places = Walk {
            outer: 0,
            middle: self.output.width * STEM,
            inner: STEM,
        };
        nested(
            shape,
            windows,
            (&self.weight, STEM),
            y,
            places,
            Accumulate::Add,
        );
        relu6(y);
    }
}

/// A convolution's weights and biases with the batch normalisation after it folded in.
fn folded(
    weights: &mut Weights<'_>,
    conv: &str,
    norm: &str,
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
