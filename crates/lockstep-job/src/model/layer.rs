//! The layers of a stack.

use super::Pair;
use crate::field::{Field, Rule};
use crate::section::Section;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One layer of a stack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LayerSpec {
    /// A dense layer with a bias. An image is flattened for it.
    Linear {
        /// Width of its output. Only the last layer may leave it out: then it is the number of
        /// classes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1))]
        out: Option<usize>,
    },
    /// A convolution over images.
    #[serde(rename = "conv2d")]
    Conv2d {
        /// Channels of its output.
        #[schemars(range(min = 1))]
        out: usize,
        /// Size of what an output sees: one number, or height and width.
        #[schemars(extend("minimum" = 1))]
        kernel: Pair,
        /// From one output to the next: one number, or down and right.
        #[serde(default = "one")]
        #[schemars(extend("minimum" = 1))]
        stride: Pair,
        /// Zeros around the image: one number, or above and below, left and right.
        #[serde(default = "zero")]
        padding: Pair,
        /// Whether a learned number is added to each output channel.
        #[serde(default = "yes")]
        bias: bool,
    },
    /// Batch-norm over each unit or channel, with a learned scale and shift.
    BatchNorm,
    /// `max(x, 0)`.
    Relu,
    /// `x` times the share of a normal distribution below `x`.
    Gelu,
    /// The largest number of each window.
    MaxPool {
        /// Size of the window: one number, or height and width.
        #[schemars(extend("minimum" = 1))]
        kernel: Pair,
        /// From one window to the next. If left out, the kernel: windows side by side.
        #[schemars(with = "Option<Pair>", extend("minimum" = 1))]
        stride: Pair,
        /// What is around the image, and never the largest. At most half of the kernel.
        #[serde(default = "zero")]
        padding: Pair,
    },
    /// The mean of each window.
    AvgPool {
        /// Size of the window: one number, or height and width.
        #[schemars(extend("minimum" = 1))]
        kernel: Pair,
        /// From one window to the next. If left out, the kernel: windows side by side.
        #[schemars(with = "Option<Pair>", extend("minimum" = 1))]
        stride: Pair,
        /// Zeros around the image, which count in the mean. At most half of the kernel.
        #[serde(default = "zero")]
        padding: Pair,
    },
    /// The mean of each channel over the whole image.
    GlobalPool,
    /// Layers whose output is added to their input: `body(x) + shortcut(x)`.
    Residual {
        /// The layers.
        #[schemars(length(min = 1))]
        body: Vec<LayerSpec>,
        /// What the input goes through on its way around them. If empty, it is added as it is.
        #[serde(default)]
        shortcut: Vec<LayerSpec>,
    },
    /// Drops units at random in training.
    Dropout {
        /// Probability that a unit is dropped.
        #[schemars(extend("minimum" = 0, "exclusiveMaximum" = 1))]
        p: f64,
    },
    /// An image as a vector: channel by channel, each row by row.
    Flatten,
}

/// Units of a dense layer: far beyond any, and such that no product of two overflows.
pub(super) const MAX_WIDTH: usize = 1 << 24;
/// Channels of a convolution, likewise.
pub(super) const MAX_CHANNELS: usize = 1 << 16;
/// Kernels, strides and paddings, likewise.
const MAX_SIDE: usize = 1 << 10;

const KINDS: [&str; 11] = [
    "linear",
    "conv2d",
    "batch-norm",
    "relu",
    "gelu",
    "max-pool",
    "avg-pool",
    "global-pool",
    "residual",
    "dropout",
    "flatten",
];

fn one() -> Pair {
    Pair::both(1)
}

fn zero() -> Pair {
    Pair::both(0)
}

fn yes() -> bool {
    true
}

impl LayerSpec {
    /// Whether it is a batch-norm or has one inside.
    pub(super) fn has_batch_norm(&self) -> bool {
        match self {
            LayerSpec::BatchNorm => true,
            LayerSpec::Residual { body, shortcut } => {
                body.iter().chain(shortcut).any(LayerSpec::has_batch_norm)
            }
            _ => false,
        }
    }

    /// Reads a whole stack, the last layer of which gives the classes' scores.
    pub(super) fn read_stack(field: &Field<'_>) -> Option<Vec<LayerSpec>> {
        let fields = field.items()?;
        let Some((last, before)) = fields.split_last() else {
            return field.reject("must not be empty", "for example [{ kind = \"linear\" }]");
        };
        let before = read_all(before);
        let last_layer = read_layer(last.section()?, Place::Last)?;
        if !matches!(last_layer, LayerSpec::Linear { .. }) {
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
fn read_all(fields: &[Field<'_>]) -> Option<Vec<LayerSpec>> {
    let layers: Vec<Option<LayerSpec>> = fields
        .iter()
        .map(|field| read_layer(field.section()?, Place::Inside))
        .collect();
    layers.into_iter().collect()
}

/// Where in its stack a layer is.
#[derive(PartialEq)]
enum Place {
    Inside,
    Last,
}

fn read_layer(mut section: Section<'_>, place: Place) -> Option<LayerSpec> {
    let kind = section.need(
        "kind",
        "add a `kind`, such as \"conv2d\", \"relu\" or \"linear\"",
    );
    let Some(kind) = kind.and_then(|field| field.one_of(&KINDS)) else {
        section.give_up();
        return None;
    };
    section.is_of_kind(kind);
    let layer = match kind {
        "linear" => read_linear(&mut section, place),
        "conv2d" => read_conv2d(&mut section),
        "batch-norm" => Some(LayerSpec::BatchNorm),
        "relu" => Some(LayerSpec::Relu),
        "gelu" => Some(LayerSpec::Gelu),
        "max-pool" | "avg-pool" => read_pool(kind, &mut section),
        "global-pool" => Some(LayerSpec::GlobalPool),
        "residual" => read_residual(&mut section),
        "dropout" => section
            .need("p", "add the probability, for example `p = 0.25`")
            .and_then(|field| field.number(Rule::BELOW_ONE))
            .map(|p| LayerSpec::Dropout { p }),
        _ => Some(LayerSpec::Flatten),
    };
    section.finish();
    layer
}

fn read_linear(section: &mut Section<'_>, place: Place) -> Option<LayerSpec> {
    let width = |field: Field<'_>| field.integer(1..=MAX_WIDTH);
    let out = match place {
        Place::Last => section.maybe("out", width)?,
        Place::Inside => {
            let field = section.need("out", "add its width, for example `out = 512`")?;
            Some(width(field)?)
        }
    };
    Some(LayerSpec::Linear { out })
}

fn read_conv2d(section: &mut Section<'_>) -> Option<LayerSpec> {
    let out = section
        .need("out", "add its channels, for example `out = 32`")
        .and_then(|field| field.integer(1..=MAX_CHANNELS));
    let kernel = read_kernel(section);
    let stride = section.or("stride", one(), |field| Pair::read(&field, 1..=MAX_SIDE));
    let padding = section.or("padding", zero(), |field| Pair::read(&field, 0..=MAX_SIDE));
    let bias = section.or("bias", yes(), |field| field.boolean());
    Some(LayerSpec::Conv2d {
        out: out?,
        kernel: kernel?,
        stride: stride?,
        padding: padding?,
        bias: bias?,
    })
}

fn read_pool(kind: &str, section: &mut Section<'_>) -> Option<LayerSpec> {
    let kernel = read_kernel(section);
    let stride = section.maybe("stride", |field| Pair::read(&field, 1..=MAX_SIDE));
    let padding = section.or("padding", zero(), |field| {
        let padding = Pair::read(&field, 0..=MAX_SIDE)?;
        match kernel {
            // A window that lies wholly outside would have nothing to see.
            Some(kernel)
                if 2 * padding.height > kernel.height || 2 * padding.width > kernel.width =>
            {
                field.reject(
                    "must be at most half of the kernel",
                    "a smaller padding, or a larger kernel",
                )
            }
            _ => Some(padding),
        }
    });
    let (kernel, padding) = (kernel?, padding?);
    let stride = stride?.unwrap_or(kernel);
    Some(match kind {
        "max-pool" => LayerSpec::MaxPool {
            kernel,
            stride,
            padding,
        },
        _ => LayerSpec::AvgPool {
            kernel,
            stride,
            padding,
        },
    })
}

fn read_kernel(section: &mut Section<'_>) -> Option<Pair> {
    let field = section.need(
        "kernel",
        "add its size, for example `kernel = 3` or `kernel = [3, 5]`",
    )?;
    Pair::read(&field, 1..=MAX_SIDE)
}

fn read_residual(section: &mut Section<'_>) -> Option<LayerSpec> {
    let body = section
        .need("body", "add `body = [...]`, the layers to go around")
        .and_then(|field| {
            let layers = read_all(&field.items()?)?;
            if layers.is_empty() {
                return field.reject("must not be empty", "the layers to go around");
            }
            Some(layers)
        });
    let shortcut = section.or("shortcut", Vec::new(), |field| read_all(&field.items()?));
    Some(LayerSpec::Residual {
        body: body?,
        shortcut: shortcut?,
    })
}
