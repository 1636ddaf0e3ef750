//! The job's network in the terms of the model, and the model's layers in the job file's words.
//!
//! What a family such as `mlp` stands for is known to [`zoo`] alone. A stack of the user's own is numbered:
//! `layers.3.weight`, and inside a residual layer `layers.3.body.0.weight` or `layers.3.shortcut.0.weight`.

use lockstep_job::{JobLayer, JobNetwork, Pair};
use lockstep_nn::{Dims, LayerSpec, NamedLayer, NnError, zoo};
use serde::{Deserialize, Serialize};

/// The network that a job describes, for as many outputs as its data turns out to need. It is written as the job file
/// writes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NetworkPlan(JobNetwork);

/// The layers of a network in the job file's words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LayerWords(Vec<JobLayer>);

impl NetworkPlan {
    /// The network of a job.
    pub fn of(network: &JobNetwork) -> Self {
        Self(network.clone())
    }

    /// Its layers for so many outputs.
    pub fn layers(&self, outputs: usize) -> Vec<NamedLayer> {
        layers(&self.0, outputs)
    }

    /// Its layers for so many outputs in the job file's words: for whoever builds it elsewhere and does not need its
    /// tensors' names.
    pub fn in_words(&self, outputs: usize) -> LayerWords {
        LayerWords(in_words(self.layers(outputs)))
    }

    /// The network layer by layer, for whoever builds it elsewhere; none for one that is known by its name alone.
    pub fn as_stack(&self) -> Option<LayerWords> {
        as_stack(&self.0).map(LayerWords)
    }

    /// The key of the job file that is wrong where the network cannot be built.
    pub fn wrong_key(&self, error: &NnError) -> String {
        match (&self.0, error.layer()) {
            (JobNetwork::Stack { .. }, Some(layer)) => key(layer),
            _ => "[model]".to_owned(),
        }
    }
}

fn as_stack(network: &JobNetwork) -> Option<Vec<JobLayer>> {
    match network {
        JobNetwork::ResNet18 { .. } => None,
        JobNetwork::Stack { layers } => Some(layers.clone()),
        family => {
            let mut layers = in_words(layers(family, 1));
            if let Some(JobLayer::Linear { out }) = layers.last_mut() {
                // As many as there are classes.
                *out = None;
            }
            Some(layers)
        }
    }
}

/// The network's layers for so many classes.
fn layers(network: &JobNetwork, classes: usize) -> Vec<NamedLayer> {
    match network {
        JobNetwork::Mlp {
            hidden,
            dropout,
            batch_norm,
        } => zoo::mlp(hidden, *dropout, *batch_norm, classes),
        JobNetwork::Head { hidden, dropout } => zoo::head(*hidden, *dropout, classes),
        JobNetwork::Cnn {
            channels,
            dropout,
            dense,
            dense_dropout,
        } => {
            let blocks: Vec<(usize, f64)> = channels
                .iter()
                .copied()
                .zip(dropout.iter().copied())
                .collect();
            zoo::cnn(&blocks, *dense, *dense_dropout, classes)
        }
        JobNetwork::ResNet18 { small_stem } => zoo::resnet18(classes, *small_stem),
        JobNetwork::Stack { layers } => named("layers", layers, classes),
    }
}

/// Layers of the model as the job file writes them.
fn in_words(layers: Vec<NamedLayer>) -> Vec<JobLayer> {
    let pair = |[height, width]: [usize; 2]| Pair { height, width };
    let word = |layer: NamedLayer| {
        Some(match layer.spec {
            // The data's matter, and not the job file's.
            LayerSpec::Embedding { .. } => return None,
            LayerSpec::Linear { out } => JobLayer::Linear { out: Some(out) },
            LayerSpec::Relu => JobLayer::Relu,
            LayerSpec::Gelu => JobLayer::Gelu,
            LayerSpec::LeakyRelu { slope } => JobLayer::LeakyRelu { slope },
            LayerSpec::Silu => JobLayer::Silu,
            LayerSpec::Sigmoid => JobLayer::Sigmoid,
            LayerSpec::Tanh => JobLayer::Tanh,
            LayerSpec::LayerNorm => JobLayer::LayerNorm,
            LayerSpec::GroupNorm { groups } => JobLayer::GroupNorm { groups },
            LayerSpec::Dropout { p } => JobLayer::Dropout { p },
            LayerSpec::BatchNorm => JobLayer::BatchNorm,
            LayerSpec::Conv2d {
                out,
                kernel,
                stride,
                padding,
                groups,
                bias,
            } => JobLayer::Conv2d {
                out,
                kernel: pair(kernel),
                stride: pair(stride),
                padding: pair(padding),
                groups: Some(groups).filter(|&groups| groups > 1),
                bias,
            },
            LayerSpec::Conv1d {
                out,
                kernel,
                stride,
                padding,
                groups,
                bias,
            } => JobLayer::Conv1d {
                out,
                kernel,
                stride,
                padding,
                groups: Some(groups).filter(|&groups| groups > 1),
                bias,
            },
            LayerSpec::Unflatten { shape } => JobLayer::Unflatten {
                shape: match shape {
                    Dims { height: 1, .. } => vec![shape.channels, shape.width],
                    _ => vec![shape.channels, shape.height, shape.width],
                },
            },
            LayerSpec::MaxPool {
                kernel,
                stride,
                padding,
            } => JobLayer::MaxPool {
                kernel: pair(kernel),
                stride: pair(stride),
                padding: pair(padding),
            },
            LayerSpec::AvgPool {
                kernel,
                stride,
                padding,
            } => JobLayer::AvgPool {
                kernel: pair(kernel),
                stride: pair(stride),
                padding: pair(padding),
            },
            LayerSpec::GlobalPool => JobLayer::GlobalPool,
            LayerSpec::Flatten => JobLayer::Flatten,
            LayerSpec::Residual { body, shortcut } => JobLayer::Residual {
                body: in_words(body),
                shortcut: in_words(shortcut),
            },
        })
    };
    layers.into_iter().filter_map(word).collect()
}

/// Layers in a row, whose names are their numbers behind `prefix`.
fn named(prefix: &str, layers: &[JobLayer], classes: usize) -> Vec<NamedLayer> {
    let named = |(i, layer)| {
        let name = format!("{prefix}.{i}");
        let spec = spec(&name, layer, classes);
        NamedLayer { name, spec }
    };
    layers.iter().enumerate().map(named).collect()
}

fn spec(name: &str, layer: &JobLayer, classes: usize) -> LayerSpec {
    match *layer {
        JobLayer::Linear { out } => LayerSpec::Linear {
            out: out.unwrap_or(classes),
        },
        JobLayer::Conv2d {
            out,
            kernel,
            stride,
            padding,
            groups,
            bias,
        } => LayerSpec::Conv2d {
            out,
            kernel: kernel.into(),
            stride: stride.into(),
            padding: padding.into(),
            groups: groups.unwrap_or(1),
            bias,
        },
        JobLayer::Conv1d {
            out,
            kernel,
            stride,
            padding,
            groups,
            bias,
        } => LayerSpec::Conv1d {
            out,
            kernel,
            stride,
            padding,
            groups: groups.unwrap_or(1),
            bias,
        },
        JobLayer::BatchNorm => LayerSpec::BatchNorm,
        JobLayer::Relu => LayerSpec::Relu,
        JobLayer::Gelu => LayerSpec::Gelu,
        JobLayer::LeakyRelu { slope } => LayerSpec::LeakyRelu { slope },
        JobLayer::Silu => LayerSpec::Silu,
        JobLayer::Sigmoid => LayerSpec::Sigmoid,
        JobLayer::Tanh => LayerSpec::Tanh,
        JobLayer::LayerNorm => LayerSpec::LayerNorm,
        JobLayer::GroupNorm { groups } => LayerSpec::GroupNorm { groups },
        JobLayer::MaxPool {
            kernel,
            stride,
            padding,
        } => LayerSpec::MaxPool {
            kernel: kernel.into(),
            stride: stride.into(),
            padding: padding.into(),
        },
        JobLayer::AvgPool {
            kernel,
            stride,
            padding,
        } => LayerSpec::AvgPool {
            kernel: kernel.into(),
            stride: stride.into(),
            padding: padding.into(),
        },
        JobLayer::MaxPool1d { kernel, stride } => LayerSpec::MaxPool {
            kernel: [1, kernel],
            stride: [1, stride],
            padding: [0, 0],
        },
        JobLayer::AvgPool1d { kernel, stride } => LayerSpec::AvgPool {
            kernel: [1, kernel],
            stride: [1, stride],
            padding: [0, 0],
        },
        JobLayer::GlobalPool => LayerSpec::GlobalPool,
        JobLayer::Residual {
            ref body,
            ref shortcut,
        } => LayerSpec::Residual {
            body: named(&format!("{name}.body"), body, classes),
            shortcut: named(&format!("{name}.shortcut"), shortcut, classes),
        },
        JobLayer::Dropout { p } => LayerSpec::Dropout { p },
        JobLayer::Flatten => LayerSpec::Flatten,
        JobLayer::Unflatten { ref shape } => LayerSpec::Unflatten {
            shape: match shape[..] {
                [channels, height, width] => Dims {
                    height,
                    width,
                    channels,
                },
                _ => Dims {
                    height: 1,
                    width: shape[1],
                    channels: shape[0],
                },
            },
        },
    }
}

/// The key of a stack's layer: `layers.3.body.0` is `model.layers[3].body[0]`.
fn key(layer: &str) -> String {
    let mut key = "model".to_owned();
    for part in layer.split('.') {
        key += &match part.parse::<usize>() {
            Ok(number) => format!("[{number}]"),
            Err(_) => format!(".{part}"),
        };
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_in_the_job_files_words_builds_the_same_layers() {
        let cnn = JobNetwork::Cnn {
            channels: vec![32, 64, 128],
            dropout: vec![0.2, 0.0, 0.4],
            dense: 128,
            dense_dropout: 0.5,
        };
        let mlp = JobNetwork::Mlp {
            hidden: vec![9, 8],
            dropout: 0.3,
            batch_norm: true,
        };
        for family in [cnn, mlp] {
            let stack = JobNetwork::Stack {
                layers: as_stack(&family).unwrap(),
            };
            assert_eq!(layers(&stack, 10), layers(&family, 10));
        }
        let named = JobNetwork::ResNet18 { small_stem: true };
        assert_eq!(as_stack(&named), None);
    }

    #[test]
    fn an_mlp_is_a_stack_with_a_last_linear_layer() {
        let mlp = |dropout, batch_norm| {
            as_stack(&JobNetwork::Mlp {
                hidden: vec![3, 4],
                dropout,
                batch_norm,
            })
        };
        let hidden = |out| {
            [
                JobLayer::Linear { out: Some(out) },
                JobLayer::BatchNorm,
                JobLayer::Relu,
                JobLayer::Dropout { p: 0.3 },
            ]
        };
        let mut layers = [hidden(3), hidden(4)].concat();
        layers.push(JobLayer::Linear { out: None });
        assert_eq!(mlp(0.3, true), Some(layers));
        assert_eq!(mlp(0.0, false).unwrap().len(), 5);
    }

    #[test]
    fn a_cnn_is_blocks_of_two_convolutions_a_dense_layer_and_a_last_one() {
        let network = JobNetwork::Cnn {
            channels: vec![3, 5],
            dropout: vec![0.0, 0.5],
            dense: 7,
            dense_dropout: 0.5,
        };
        let convolution = |out| {
            let (kernel, stride, padding) = (Pair::both(3), Pair::both(1), Pair::both(1));
            let convolution = JobLayer::Conv2d {
                out,
                kernel,
                stride,
                padding,
                groups: None,
                bias: true,
            };
            [convolution, JobLayer::BatchNorm, JobLayer::Relu]
        };
        let pool = JobLayer::MaxPool {
            kernel: Pair::both(2),
            stride: Pair::both(2),
            padding: Pair::both(0),
        };
        let half = JobLayer::Dropout { p: 0.5 };
        let mut layers = [convolution(3), convolution(3)].concat();
        layers.push(pool.clone());
        layers.extend([convolution(5), convolution(5)].concat());
        layers.extend([pool, half.clone(), JobLayer::Flatten]);
        layers.extend([JobLayer::Linear { out: Some(7) }, JobLayer::Relu, half]);
        layers.push(JobLayer::Linear { out: None });
        assert_eq!(as_stack(&network), Some(layers));
    }

    #[test]
    fn the_words_for_layers_stand_for_those_layers() {
        let residual = layers(&JobNetwork::ResNet18 { small_stem: false }, 10);
        let words = in_words(residual.clone());
        let specs = |layers: &[NamedLayer]| {
            let specs = layers.iter().map(|layer| in_words(vec![layer.clone()]));
            specs.collect::<Vec<_>>()
        };
        assert_eq!(specs(&named("layers", &words, 10)), specs(&residual));
    }

    #[test]
    fn layers_inside_a_residual_are_named_after_their_path() {
        let network = JobNetwork::Stack {
            layers: vec![
                JobLayer::Relu,
                JobLayer::Residual {
                    body: vec![JobLayer::Gelu, JobLayer::BatchNorm],
                    shortcut: vec![JobLayer::MaxPool {
                        kernel: Pair::both(1),
                        stride: Pair::both(1),
                        padding: Pair::both(0),
                    }],
                },
                JobLayer::Linear { out: None },
            ],
        };
        let layers = layers(&network, 7);
        let LayerSpec::Residual { body, shortcut } = &layers[1].spec else {
            panic!("{:?}", layers[1]);
        };
        assert_eq!(body[1].name, "layers.1.body.1");
        assert_eq!(shortcut[0].name, "layers.1.shortcut.0");
        assert_eq!(
            layers[2],
            NamedLayer::new("layers.2", LayerSpec::Linear { out: 7 })
        );
        assert_eq!(key(&body[1].name), "model.layers[1].body[1]");
    }
}
