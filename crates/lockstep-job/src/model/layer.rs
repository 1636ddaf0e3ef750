//! The layers of a stack.

use super::Pair;
use crate::field::{Field, Rule};
use crate::keys::{Any, By, Check, Each, NotEmpty, SchemaLimits, kinds};
use crate::section::Section;
use schemars::JsonSchema;
use serde_json::{Map, Value};
use std::ops::RangeInclusive;

/// Hands the kinds of layers and their keys to a macro: [`JobLayer`] comes from this list, and so does its conversion to
/// and from the layers of a model, in which a kind has the same name and its settings those of its keys.
#[macro_export]
macro_rules! job_layers {
    ($then:ident) => {
        $then! {
            /// One layer of a stack.
            pub enum JobLayer {
                /// A dense layer with a bias. An image is flattened for it.
                "linear" Linear {
                    /// Width of its output. Only the last layer may leave it out: then it is the number of
                    /// classes.
                    out: Option<usize> = optional => 1..=MAX_WIDTH;
                }
                /// A convolution over images.
                "conv2d" Conv2d {
                    /// Channels of its output.
                    out: usize = need("add its channels, for example `out = 32`") => 1..=MAX_CHANNELS;
                    /// Size of what an output sees: one number, or height and width.
                    kernel: Pair = need(KERNEL) => Sides(1..=MAX_SIDE);
                    /// From one output to the next: one number, or down and right.
                    stride: Pair = default(Pair::both(1)) => Sides(1..=MAX_SIDE);
                    /// Zeros around the image: one number, or above and below, left and right.
                    /// `"same"` keeps the image's size, with an odd kernel and stride 1.
                    padding: Pair as Padding = default(Pair::both(0)) => Any, |field, ()| read_padding(field, kernel, stride);
                    /// How many groups the channels are parted into; an output channel sees one of them. As many as channels
                    /// make it a depthwise convolution. If left out, 1.
                    groups: Option<usize> = optional => 1..=MAX_CHANNELS;
                    /// Whether a learned number is added to each output channel.
                    bias: bool = default(true) => Any;
                }
                /// A convolution over sequences.
                "conv1d" Conv1d {
                    /// Channels of its output.
                    out: usize = need("add its channels, for example `out = 32`") => 1..=MAX_CHANNELS;
                    /// How many numbers of each channel an output sees.
                    kernel: usize = need("add its size, for example `kernel = 5`") => 1..=MAX_SIDE;
                    /// From one output to the next.
                    stride: usize = default(1) => 1..=MAX_SIDE;
                    /// Zeros on each side of the sequence. `"same"` keeps its length, with an odd kernel and stride 1.
                    padding: usize as LinePadding = default(0) => Any, |field, ()| read_line_padding(field, kernel, stride);
                    /// How many groups the channels are parted into; an output channel sees one of them. If left out, 1.
                    groups: Option<usize> = optional => 1..=MAX_CHANNELS;
                    /// Whether a learned number is added to each output channel.
                    bias: bool = default(true) => Any;
                }
                /// Batch-norm over each unit or channel, with a learned scale and shift.
                "batch-norm" BatchNorm
                /// `max(x, 0)`.
                "relu" Relu
                /// `x` times the share of a normal distribution below `x`.
                "gelu" Gelu
                /// `x`, or `slope` times it below 0.
                "leaky-relu" LeakyRelu {
                    /// What a number below 0 is multiplied by.
                    slope: f64 = default(0.01) => Rule::NOT_NEGATIVE;
                }
                /// `x` times its sigmoid.
                "silu" Silu
                /// `1 / (1 + e^-x)`.
                "sigmoid" Sigmoid
                /// The hyperbolic tangent.
                "tanh" Tanh
                /// Normalisation of a vector over its numbers, or of each pixel over its channels, with a learned scale and
                /// shift.
                "layer-norm" LayerNorm
                /// Normalisation of groups of channels over the whole image, with a learned scale and shift of each channel.
                "group-norm" GroupNorm {
                    /// How many groups the channels are parted into.
                    groups: usize = need("add how many, for example `groups = 8`") => 1..=MAX_CHANNELS;
                }
                /// The largest number of each window.
                "max-pool" MaxPool {
                    /// Size of the window: one number, or height and width.
                    kernel: Pair = need(KERNEL) => Sides(1..=MAX_SIDE);
                    /// From one window to the next. If left out, the kernel: windows side by side.
                    stride: Pair = otherwise(kernel) => Sides(1..=MAX_SIDE);
                    /// What is around the image, and never the largest. At most half of the kernel.
                    padding: Pair = default(Pair::both(0)) => Sides(0..=MAX_SIDE),
                        |field, padding| half_of_kernel(field, padding, kernel);
                }
                /// The mean of each window.
                "avg-pool" AvgPool {
                    /// Size of the window: one number, or height and width.
                    kernel: Pair = need(KERNEL) => Sides(1..=MAX_SIDE);
                    /// From one window to the next. If left out, the kernel: windows side by side.
                    stride: Pair = otherwise(kernel) => Sides(1..=MAX_SIDE);
                    /// Zeros around the image, which count in the mean. At most half of the kernel.
                    padding: Pair = default(Pair::both(0)) => Sides(0..=MAX_SIDE),
                        |field, padding| half_of_kernel(field, padding, kernel);
                }
                /// The largest number of each window of a sequence.
                "max-pool1d" MaxPool1d {
                    /// Numbers of the window.
                    kernel: usize = need("add its size, for example `kernel = 2`") => 1..=MAX_SIDE;
                    /// From one window to the next. If left out, the kernel: windows side by side.
                    stride: usize = otherwise(kernel) => 1..=MAX_SIDE;
                }
                /// The mean of each window of a sequence.
                "avg-pool1d" AvgPool1d {
                    /// Numbers of the window.
                    kernel: usize = need("add its size, for example `kernel = 2`") => 1..=MAX_SIDE;
                    /// From one window to the next. If left out, the kernel: windows side by side.
                    stride: usize = otherwise(kernel) => 1..=MAX_SIDE;
                }
                /// The mean of each channel over the whole image.
                "global-pool" GlobalPool
                /// Layers whose output is added to their input: `body(x) + shortcut(x)`.
                "residual" Residual {
                    /// The layers.
                    body: Vec<JobLayer> = need("add `body = [...]`, the layers to go around") => NotEmpty(By(read_inner), "the layers to go around");
                    /// What the input goes through on its way around them. If empty, it is added as it is.
                    shortcut: Vec<JobLayer> = default(Vec::new())
                        => Each(By(read_inner));
                }
                /// Drops units at random in training.
                "dropout" Dropout {
                    /// Probability that a unit is dropped.
                    p: f64 = need("add the probability, for example `p = 0.25`") => Rule::BELOW_ONE;
                }
                /// An image as a vector: channel by channel, each row by row.
                "flatten" Flatten
                /// A vector as channels of a sequence or an image, one after the other.
                "unflatten" Unflatten {
                    /// Channels and length of a sequence, or channels, height and width of an image.
                    shape: Vec<usize> = need("add it, for example `shape = [3, 128]`: channels and length")
                        => Each(1..=MAX_WIDTH), |field, shape: Vec<usize>| match shape.len() {
                            2 | 3 => Some(shape),
                            found => field.reject(
                                format!("must have two numbers or three, found {found}"),
                                "[channels, length] of a sequence, or [channels, height, width] of an image",
                            ),
                        };
                }
            }
        }
    };
}

job_layers!(kinds);

/// Units of a dense layer: far beyond any, and such that no product of two overflows.
pub(super) const MAX_WIDTH: usize = 1 << 24;
/// Channels of a convolution, likewise.
pub(super) const MAX_CHANNELS: usize = 1 << 16;
/// Kernels, strides and paddings, likewise.
const MAX_SIDE: usize = 1 << 10;

/// What to write where a window has no size.
const KERNEL: &str = "add its size, for example `kernel = 3` or `kernel = [3, 5]`";

/// A size, or a height and a width, within a range.
struct Sides(RangeInclusive<usize>);

impl SchemaLimits for Sides {
    fn describe(&self, schema: &mut Map<String, Value>) {
        self.0.describe(schema);
    }
}

impl Check<Pair> for Sides {
    fn read(&self, field: &Field<'_>) -> Option<Pair> {
        Pair::read(field, self.0.clone())
    }
}

/// [`Pair`] as the padding of a convolution writes it.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum Padding {
    /// As much as keeps the image's size.
    Word(SamePadding),
    /// Zeros around the image: one number, or above and below, left and right.
    Zeros(Pair),
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
enum SamePadding {
    #[serde(rename = "same")]
    Same,
}

/// The padding of a sequence as a convolution writes it.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum LinePadding {
    /// As much as keeps the length.
    Word(SamePadding),
    /// Zeros on each side.
    Zeros(usize),
}

/// The same of a convolution over sequences.
fn read_line_padding(
    field: &Field<'_>,
    kernel: Option<usize>,
    stride: Option<usize>,
) -> Option<usize> {
    if !field.is_text() {
        return field.integer(0..=MAX_SIDE);
    }
    read_padding(field, kernel.map(Pair::both), stride.map(Pair::both)).map(|pair| pair.width)
}

/// The padding of a convolution, by numbers or as much as keeps the image's size.
fn read_padding(field: &Field<'_>, kernel: Option<Pair>, stride: Option<Pair>) -> Option<Pair> {
    if !field.is_text() {
        return Sides(0..=MAX_SIDE).read(field);
    }
    field.one_of(&["same"])?;
    let (kernel, stride) = (kernel?, stride?);
    if stride != Pair::both(1) {
        return field.reject(
            "cannot be \"same\" with a stride",
            "numbers, or a stride of 1",
        );
    }
    if kernel.height % 2 == 0 || kernel.width % 2 == 0 {
        return field.reject(
            "cannot be \"same\" with an even kernel: it has no middle",
            "numbers, or an odd kernel",
        );
    }
    Some(Pair {
        height: kernel.height / 2,
        width: kernel.width / 2,
    })
}

/// A window that lies wholly outside would have nothing to see.
fn half_of_kernel(field: &Field<'_>, padding: Pair, kernel: Option<Pair>) -> Option<Pair> {
    match kernel {
        Some(kernel) if 2 * padding.height > kernel.height || 2 * padding.width > kernel.width => {
            field.reject(
                "must be at most half of the kernel",
                "a smaller padding, or a larger kernel",
            )
        }
        _ => Some(padding),
    }
}

impl JobLayer {
    /// Whether it is a batch-norm or has one inside.
    pub(super) fn has_batch_norm(&self) -> bool {
        match self {
            JobLayer::BatchNorm => true,
            JobLayer::Residual { body, shortcut } => {
                body.iter().chain(shortcut).any(JobLayer::has_batch_norm)
            }
            _ => false,
        }
    }

    /// Reads a whole stack, the last layer of which gives the classes' scores.
    pub(super) fn read_stack(field: &Field<'_>) -> Option<Vec<JobLayer>> {
        let fields = field.items()?;
        let Some((last, before)) = fields.split_last() else {
            return field.reject("must not be empty", "for example [{ kind = \"linear\" }]");
        };
        let before = read_all(before);
        let last_layer = read_layer(last.section()?, Position::Last)?;
        if !matches!(last_layer, JobLayer::Linear { .. }) {
            return last.reject(
                "must be linear, since it is the last layer",
                "add { kind = \"linear\" } after it: one output a class",
            );
        }
        let mut layers = before?;
        layers.push(last_layer);
        Some(layers)
    }
}

/// Layers that others follow. Reads them all before giving up, so that every mistake is reported.
fn read_all(fields: &[Field<'_>]) -> Option<Vec<JobLayer>> {
    let layers: Vec<Option<JobLayer>> = fields.iter().map(read_inner).collect();
    layers.into_iter().collect()
}

/// A layer that others follow.
fn read_inner(field: &Field<'_>) -> Option<JobLayer> {
    read_layer(field.section()?, Position::Inside)
}

/// Where in its stack a layer is.
#[derive(PartialEq)]
enum Position {
    Inside,
    Last,
}

fn read_layer(section: Section<'_>, position: Position) -> Option<JobLayer> {
    let fix = "add a `kind`, such as \"conv2d\", \"relu\" or \"linear\"";
    section.of_kind(fix, JobLayer::KINDS, |kind, section| {
        if kind == "linear" && position == Position::Inside {
            section.need("out", "add its width, for example `out = 512`");
        }
        JobLayer::read_keys(kind, section)
    })
}
