//! The families of networks, and the stack of the user's own.

use super::layer::{MAX_CHANNELS, MAX_WIDTH};
use super::{LayerSpec, Pair};
use crate::field::{Field, Rule};
use crate::section::Section;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A network, by the name of a family or layer by layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Network {
    /// Dense layers with ReLU between them, and a last one to the number of classes.
    Mlp {
        /// Width of each hidden layer.
        #[schemars(length(min = 1), inner(range(min = 1)))]
        hidden: Vec<usize>,
        /// Probability that a hidden unit is dropped in a training step.
        #[serde(default)]
        #[schemars(extend("minimum" = 0, "exclusiveMaximum" = 1))]
        dropout: f64,
        /// Whether each hidden layer is batch-normalised before its ReLU.
        #[serde(default)]
        batch_norm: bool,
    },
    /// A classifier of vectors: linear, batch-norm, ReLU, dropout, and linear to the number of classes.
    Head {
        /// Width of the hidden layer.
        #[serde(default = "head_hidden")]
        #[schemars(range(min = 1))]
        hidden: usize,
        /// Probability that a hidden unit is dropped in a training step.
        #[serde(default = "head_dropout")]
        #[schemars(extend("minimum" = 0, "exclusiveMaximum" = 1))]
        dropout: f64,
    },
    /// Blocks of two convolutions and a pool, a dense layer, and a last one to the number of classes.
    Cnn {
        /// Channels of each block's convolutions. A block halves the image.
        #[serde(default = "channels")]
        #[schemars(length(min = 1), inner(range(min = 1)))]
        channels: Vec<usize>,
        /// Probability that a unit is dropped after each block, a number a block. If left out, 0.2
        /// and 0.1 more with every block, at most 0.5.
        #[schemars(with = "Option<Vec<f64>>", inner(range(min = 0, max = 1)))]
        dropout: Vec<f64>,
        /// Width of the dense layer.
        #[serde(default = "dense")]
        #[schemars(range(min = 1))]
        dense: usize,
        /// Probability that a unit of the dense layer is dropped.
        #[serde(default = "dense_dropout")]
        #[schemars(extend("minimum" = 0, "exclusiveMaximum" = 1))]
        dense_dropout: f64,
    },
    /// ResNet-18, as torchvision has it.
    #[serde(rename = "resnet18")]
    ResNet18 {
        /// Whether it begins with a 3x3 convolution and no pool, for images of 32x32 or so.
        #[serde(default)]
        small_stem: bool,
    },
    /// A stack of the user's own.
    Stack {
        /// From the input to the output. The last is linear; its `out` may be left out.
        #[schemars(length(min = 1))]
        layers: Vec<LayerSpec>,
    },
}

const KINDS: [&str; 5] = ["mlp", "head", "cnn", "resnet18", "stack"];

fn head_hidden() -> usize {
    256
}

fn head_dropout() -> f64 {
    0.3
}

fn channels() -> Vec<usize> {
    vec![32, 64, 128]
}

/// Deeper blocks have more to forget.
fn block_dropout(blocks: usize) -> Vec<f64> {
    (0..blocks)
        .map(|block| (block + 2).min(5) as f64 / 10.0)
        .collect()
}

fn dense() -> usize {
    128
}

fn dense_dropout() -> f64 {
    0.5
}

impl Network {
    /// The layers that the network stands for, from the input to the output; none for one that is
    /// known by its name alone.
    ///
    /// An MLP's hidden layer is linear, batch-norm if asked for, ReLU, dropout if there is any. A
    /// block of a CNN is twice (convolution, batch-norm, ReLU), max-pool, dropout. The last layer is
    /// always linear.
    pub fn layers(&self) -> Option<Vec<LayerSpec>> {
        match self {
            Network::Mlp {
                hidden,
                dropout,
                batch_norm,
            } => Some(mlp(hidden, *dropout, *batch_norm)),
            Network::Cnn {
                channels,
                dropout,
                dense,
                dense_dropout,
            } => Some(cnn(channels, dropout, *dense, *dense_dropout)),
            Network::Head { hidden, dropout } => Some(mlp(&[*hidden], *dropout, true)),
            Network::ResNet18 { .. } => None,
            Network::Stack { layers } => Some(layers.clone()),
        }
    }

    /// Whether any layer is a batch-norm, which needs two rows in every lane.
    pub fn uses_batch_norm(&self) -> bool {
        self.layers()
            .is_none_or(|layers| layers.iter().any(LayerSpec::has_batch_norm))
    }

    /// Which family the section is about.
    pub(super) fn kind(section: &mut Section<'_>) -> Option<&'static str> {
        if section.has("layers") && !section.has("kind") {
            // Known, as every network's.
            section.get("kind");
            return Some("stack");
        }
        let fix = "add `kind = \"mlp\"` with `hidden`, \"head\", \"cnn\" or \"resnet18\", or a stack of `layers`";
        section.need("kind", fix)?.one_of(&KINDS)
    }

    /// Reads the keys of that family.
    pub(super) fn read(kind: &str, section: &mut Section<'_>) -> Option<Network> {
        match kind {
            "mlp" => read_mlp(section),
            "head" => {
                let hidden = section.or("hidden", head_hidden(), |field| {
                    field.integer(1..=MAX_WIDTH)
                });
                let dropout = section.or("dropout", head_dropout(), |field| {
                    field.number(Rule::BELOW_ONE)
                });
                hidden
                    .zip(dropout)
                    .map(|(hidden, dropout)| Network::Head { hidden, dropout })
            }
            "cnn" => read_cnn(section),
            "resnet18" => section
                .or("small_stem", false, |field| field.boolean())
                .map(|small_stem| Network::ResNet18 { small_stem }),
            _ => section
                .need("layers", "add `layers = [...]`, the last of them linear")
                .and_then(|field| LayerSpec::read_stack(&field))
                .map(|layers| Network::Stack { layers }),
        }
    }
}

fn mlp(hidden: &[usize], dropout: f64, batch_norm: bool) -> Vec<LayerSpec> {
    let mut layers = Vec::new();
    for &width in hidden {
        layers.push(LayerSpec::Linear { out: Some(width) });
        if batch_norm {
            layers.push(LayerSpec::BatchNorm);
        }
        layers.push(LayerSpec::Relu);
        push_dropout(&mut layers, dropout);
    }
    layers.push(LayerSpec::Linear { out: None });
    layers
}

fn cnn(channels: &[usize], dropout: &[f64], dense: usize, dense_dropout: f64) -> Vec<LayerSpec> {
    let mut layers = Vec::new();
    for (&out, &dropout) in channels.iter().zip(dropout) {
        for _ in 0..2 {
            let convolution = LayerSpec::Conv2d {
                out,
                kernel: Pair::both(3),
                stride: Pair::both(1),
                padding: Pair::both(1),
                bias: true,
            };
            layers.extend([convolution, LayerSpec::BatchNorm, LayerSpec::Relu]);
        }
        layers.push(LayerSpec::MaxPool {
            kernel: Pair::both(2),
            stride: Pair::both(2),
            padding: Pair::both(0),
        });
        push_dropout(&mut layers, dropout);
    }
    layers.extend([
        LayerSpec::Flatten,
        LayerSpec::Linear { out: Some(dense) },
        LayerSpec::Relu,
    ]);
    push_dropout(&mut layers, dense_dropout);
    layers.push(LayerSpec::Linear { out: None });
    layers
}

fn push_dropout(layers: &mut Vec<LayerSpec>, p: f64) {
    if p > 0.0 {
        layers.push(LayerSpec::Dropout { p });
    }
}

fn read_mlp(section: &mut Section<'_>) -> Option<Network> {
    let hidden = section
        .need("hidden", "add `hidden = [512, 512]`")
        .and_then(|field| read_sizes(&field, MAX_WIDTH, "for example [512, 512]"));
    let dropout = section.or("dropout", 0.0, |field| field.number(Rule::BELOW_ONE));
    let batch_norm = section.or("batch_norm", false, |field| field.boolean());
    Some(Network::Mlp {
        hidden: hidden?,
        dropout: dropout?,
        batch_norm: batch_norm?,
    })
}

fn read_cnn(section: &mut Section<'_>) -> Option<Network> {
    let channels = section.or("channels", channels(), |field| {
        read_sizes(&field, MAX_CHANNELS, "for example [32, 64, 128]")
    });
    let dropout = section.maybe("dropout", |field| {
        let dropout = field.all(|p| p.number(Rule::BELOW_ONE))?;
        match &channels {
            Some(channels) if channels.len() != dropout.len() => field.reject(
                format!(
                    "must be as long as `channels` ({}), found {}",
                    channels.len(),
                    dropout.len()
                ),
                "one number a block",
            ),
            _ => Some(dropout),
        }
    });
    let dense = section.or("dense", dense(), |field| field.integer(1..=MAX_WIDTH));
    let dense_dropout = section.or("dense_dropout", dense_dropout(), |field| {
        field.number(Rule::BELOW_ONE)
    });
    let channels = channels?;
    Some(Network::Cnn {
        dropout: dropout?.unwrap_or_else(|| block_dropout(channels.len())),
        channels,
        dense: dense?,
        dense_dropout: dense_dropout?,
    })
}

/// At least one size, of a layer each.
fn read_sizes(field: &Field<'_>, limit: usize, example: &str) -> Option<Vec<usize>> {
    let sizes = field.all(|size| size.integer(1..=limit))?;
    if sizes.is_empty() {
        return field.reject("must not be empty", example);
    }
    Some(sizes)
}
