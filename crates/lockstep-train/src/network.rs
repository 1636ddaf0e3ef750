//! The job's network in the terms of the model: layers, each under the name that PyTorch would give it.
//!
//! A network of torchvision has torchvision's names, so that weights go both ways, and a head those of the
//! module that it is known from. Others are numbered:
//! `layers.3.weight`, and inside a residual layer `layers.3.body.0.weight` or `layers.3.shortcut.0.weight`.

use crate::TrainError;
use lockstep_job::{LayerSpec as JobLayer, Network};
use lockstep_nn::{LayerSpec, NamedLayer, NnError, zoo};

/// The network's layers for so many classes.
pub(crate) fn layers(network: &Network, classes: usize) -> Vec<NamedLayer> {
    match network {
        Network::ResNet18 { small_stem } => zoo::resnet18(classes, *small_stem),
        Network::Head { .. } => {
            let mut layers = named("", &network.layers().unwrap_or_default(), classes);
            let count = layers.len();
            for (i, layer) in layers.iter_mut().enumerate() {
                layer.name = match layer.spec {
                    LayerSpec::BatchNorm => "batch_norm",
                    LayerSpec::Relu => "relu",
                    LayerSpec::Dropout { .. } => "dropout",
                    _ if i + 1 == count => "fc2",
                    _ => "fc1",
                }
                .to_owned();
            }
            layers
        }
        Network::Mlp { .. } | Network::Cnn { .. } | Network::Stack { .. } => {
            named("layers", &network.layers().unwrap_or_default(), classes)
        }
    }
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
            bias,
        } => LayerSpec::Conv2d {
            out,
            kernel: kernel.into(),
            stride: stride.into(),
            padding: padding.into(),
            bias,
        },
        JobLayer::BatchNorm => LayerSpec::BatchNorm,
        JobLayer::Relu => LayerSpec::Relu,
        JobLayer::Gelu => LayerSpec::Gelu,
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
        JobLayer::GlobalPool => LayerSpec::GlobalPool,
        JobLayer::Residual {
            ref body,
            ref shortcut,
        } => LayerSpec::Residual {
            body: named(&format!("{name}.body"), body, classes),
            shortcut: named(&format!("{name}.shortcut"), shortcut, classes),
        },
        JobLayer::Dropout { p } => LayerSpec::Dropout { p: p as f32 },
        JobLayer::Flatten => LayerSpec::Flatten,
    }
}

/// Why the network cannot be built, with the key of the job file that is to blame.
pub(crate) fn refusal(network: &Network, source: NnError) -> TrainError {
    let key = match (network, source.layer()) {
        (Network::Stack { .. }, Some(layer)) => key(layer),
        _ => "[model]".to_owned(),
    };
    TrainError::Model { key, source }
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
    use lockstep_job::Pair;

    #[test]
    fn the_cnn_without_options_is_the_zoos() {
        let network = Network::Cnn {
            channels: vec![32, 64, 128],
            dropout: vec![0.2, 0.3, 0.4],
            dense: 128,
            dense_dropout: 0.5,
        };
        assert_eq!(layers(&network, 10), zoo::cnn(10));
    }

    #[test]
    fn the_head_has_the_names_of_the_tutorials_module() {
        let network = Network::Head {
            hidden: 256,
            dropout: 0.3,
        };
        let layers = layers(&network, 120);
        let names: Vec<&str> = layers.iter().map(|layer| layer.name.as_str()).collect();
        assert_eq!(names, ["fc1", "batch_norm", "relu", "dropout", "fc2"]);
        assert_eq!(layers[0].spec, LayerSpec::Linear { out: 256 });
        assert_eq!(layers[4].spec, LayerSpec::Linear { out: 120 });
    }

    #[test]
    fn layers_inside_a_residual_are_named_after_their_path() {
        let network = Network::Stack {
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
