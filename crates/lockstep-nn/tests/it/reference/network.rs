//! Networks as `make_reference.py` writes them.

use lockstep_nn::{Dims, EmbeddingTable, LayerSpec, NamedLayer, layers, zoo};
use serde::Deserialize;
use std::collections::BTreeMap;

/// One layer: `kind key=value ...`, or the two paths of a residual one.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Layer {
    Plain(String),
    Residual {
        body: Vec<Layer>,
        shortcut: Vec<Layer>,
    },
}

/// Height, width and channels of a row.
#[derive(Deserialize, Clone, Copy)]
pub(crate) struct Shape(usize, usize, usize);

impl From<Shape> for Dims {
    fn from(Shape(height, width, channels): Shape) -> Self {
        Self {
            height,
            width,
            channels,
        }
    }
}

/// Layers in a row, with the names of a `Sequential` called `name`.
pub(crate) fn sequential(name: &str, layers: &[Layer]) -> Vec<NamedLayer> {
    let named = |(i, layer): (usize, &Layer)| {
        let name = format!("{name}.{i}");
        let spec = match layer {
            Layer::Plain(text) => plain(text),
            Layer::Residual { body, shortcut } => LayerSpec::Residual(layers::Residual {
                body: sequential(&format!("{name}.body"), body),
                shortcut: sequential(&format!("{name}.shortcut"), shortcut),
            }),
        };
        NamedLayer::new(name, spec)
    };
    layers.iter().enumerate().map(named).collect()
}

fn plain(text: &str) -> LayerSpec {
    let mut words = text.split(' ');
    let kind = words.next().unwrap_or_default();
    let options: BTreeMap<&str, &str> = words.filter_map(|word| word.split_once('=')).collect();
    let number = |text: &str| text.parse().expect("a number");
    let out = || number(options["out"]);
    let pair = |key: &str| {
        let (height, width) = options[key].split_once('x').expect("two numbers");
        [number(height), number(width)]
    };
    match kind {
        "linear" => LayerSpec::Linear(layers::Linear { out: out() }),
        "relu" => LayerSpec::Relu,
        "gelu" => LayerSpec::Gelu,
        "leaky-relu" => LayerSpec::LeakyRelu(layers::LeakyRelu { slope: 0.25 }),
        "silu" => LayerSpec::Silu,
        "sigmoid" => LayerSpec::Sigmoid,
        "tanh" => LayerSpec::Tanh,
        "layer-norm" => LayerSpec::LayerNorm,
        "group-norm" => LayerSpec::GroupNorm(layers::GroupNorm {
            groups: number(options["groups"]),
        }),
        "batch-norm" => LayerSpec::BatchNorm,
        "conv2d" => LayerSpec::Conv2d(layers::Conv2d {
            out: out(),
            kernel: pair("kernel"),
            stride: pair("stride"),
            padding: pair("padding"),
            groups: options.get("groups").map_or(1, |groups| number(groups)),
            bias: options["bias"] == "true",
        }),
        "conv1d" => LayerSpec::Conv1d(layers::Conv1d {
            out: out(),
            kernel: number(options["kernel"]),
            stride: number(options["stride"]),
            padding: number(options["padding"]),
            groups: number(options["groups"]),
            bias: options["bias"] == "true",
        }),
        "max-pool" => LayerSpec::MaxPool(layers::MaxPool {
            kernel: pair("kernel"),
            stride: pair("stride"),
            padding: pair("padding"),
        }),
        "avg-pool" => LayerSpec::AvgPool(layers::AvgPool {
            kernel: pair("kernel"),
            stride: pair("stride"),
            padding: pair("padding"),
        }),
        "global-pool" => LayerSpec::GlobalPool,
        "flatten" => LayerSpec::Flatten,
        "unflatten" => {
            let [height, width] = pair("size");
            let channels = number(options["channels"]);
            let shape = Dims {
                height,
                width,
                channels,
            };
            LayerSpec::Unflatten(layers::Unflatten { shape })
        }
        "embedding" => {
            let tables = options["tables"].split(',').map(|table| {
                let (rows, width) = table.split_once('x').expect("two numbers");
                EmbeddingTable {
                    rows: number(rows),
                    width: number(width),
                }
            });
            LayerSpec::Embedding(layers::Embedding {
                tables: tables.collect(),
            })
        }
        _ => panic!("no layer is called {kind}"),
    }
}

/// A whole network: layer by layer, or ResNet-18 made narrower.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Network {
    Layers(Vec<Layer>),
    ResNet18 {
        /// Channels of the first stage, in place of 64.
        width: usize,
        small_stem: bool,
        classes: usize,
    },
}

impl Network {
    pub(crate) fn layers(&self) -> Vec<NamedLayer> {
        match *self {
            Self::Layers(ref layers) => sequential("layers", layers),
            Self::ResNet18 {
                width,
                small_stem,
                classes,
            } => narrower(zoo::resnet18(classes, small_stem), 64 / width),
        }
    }
}

/// The same layers, with a part of the channels.
pub(crate) fn narrower(layers: Vec<NamedLayer>, parts: usize) -> Vec<NamedLayer> {
    let narrow = |mut layer: NamedLayer| {
        match &mut layer.spec {
            LayerSpec::Conv2d(layers::Conv2d { out, .. }) => *out /= parts,
            LayerSpec::Residual(layers::Residual { body, shortcut }) => {
                for path in [body, shortcut] {
                    *path = narrower(std::mem::take(path), parts);
                }
            }
            _ => {}
        }
        layer
    };
    layers.into_iter().map(narrow).collect()
}
