//! The job's network in the terms of the model, and the model's layers in the job file's words.
//!
//! What a family such as `mlp` stands for is known to [`zoo`] alone. A stack of the user's own is numbered:
//! `layers.3.weight`, and inside a residual layer `layers.3.body.0.weight` or `layers.3.shortcut.0.weight`.

use crate::layer_setting::{KeyPlace, Setting};
use lockstep_job::{JobLayer, JobNetwork};
use lockstep_nn::{LayerSpec, NamedLayer, NnError, layers, zoo};
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
        network_layers(&self.0, outputs)
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
            let mut layers = in_words(&network_layers(family, 1));
            if let Some(JobLayer::Linear { out }) = layers.last_mut() {
                // As many as there are classes.
                *out = None;
            }
            Some(layers)
        }
    }
}

/// The network's layers for so many classes.
fn network_layers(network: &JobNetwork, classes: usize) -> Vec<NamedLayer> {
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
            let blocks = channels.iter().copied().zip(dropout.iter().copied());
            let blocks: Vec<(usize, f64)> = blocks.collect();
            zoo::cnn(&blocks, *dense, *dense_dropout, classes)
        }
        JobNetwork::ResNet18 { small_stem } => zoo::resnet18(classes, *small_stem),
        JobNetwork::Stack { layers } => named("layers", layers, classes),
    }
}

/// Layers of the model as the job file writes them. Learned vectors are not: they are the data's matter.
pub(crate) fn in_words(layers: &[NamedLayer]) -> Vec<JobLayer> {
    let word = |layer: &NamedLayer| in_word(&layer.spec);
    layers.iter().filter_map(word).collect()
}

/// Layers in a row, whose names are their numbers behind `prefix`.
pub(crate) fn named(prefix: &str, layers: &[JobLayer], outputs: usize) -> Vec<NamedLayer> {
    let named = |(i, layer)| {
        let name = format!("{prefix}.{i}");
        let spec = spec(&name, layer, outputs);
        NamedLayer::new(name, spec)
    };
    layers.iter().enumerate().map(named).collect()
}

/// Turns the job file's layers into the model's and back. Both have the same names and settings: one that does not
/// compile here stands either in the list of `lockstep-job/src/model/layer.rs` alone, or in that of
/// `lockstep-nn/src/spec.rs`.
macro_rules! conversions {
    (
        $(#[doc = $doc:literal])*
        pub enum JobLayer { $(
            $(#[doc = $kind_doc:literal])*
            $word:literal $kind:ident $({ $(
                $(#[doc = $key_doc:literal])*
                $key:ident : $type:ty $(as $shown:ty)? = $mode:ident $(($($left:expr),+))? => $check:expr $(, $and:expr)?;
            )* })?
        )* }
    ) => {
        /// A layer of the job file in the terms of the model.
        fn spec(name: &str, layer: &JobLayer, outputs: usize) -> LayerSpec {
            match layer { $(
                JobLayer::$kind $({ $($key),* })? => LayerSpec::$kind $((layers::$kind { $(
                    $key: Setting::of_key($key, KeyPlace { name, key: stringify!($key), outputs }),
                )* }))?,
            )* }
        }

        /// A layer of the model as the job file writes it, if it can.
        fn in_word(spec: &LayerSpec) -> Option<JobLayer> {
            Some(match spec {
                LayerSpec::Embedding(_) => return None,
                $(LayerSpec::$kind $((layers::$kind { $($key),* }))? => JobLayer::$kind $({ $(
                    $key: Setting::to_key($key, stringify!($key)),
                )* })?,)*
            })
        }
    };
}

lockstep_job::job_layers!(conversions);

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
            assert_eq!(network_layers(&stack, 10), network_layers(&family, 10));
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
    fn the_words_for_every_kind_of_layer_stand_for_that_layer() {
        let inside = LayerSpec::samples().into_iter().map(|(_, spec)| spec);
        let layers = NamedLayer::stack(inside.clone()).into_iter();
        let residual = layers::Residual {
            body: layers
                .filter(|layer| layer.spec.kind() != "embedding")
                .collect(),
            shortcut: Vec::new(),
        };
        for spec in inside.chain([LayerSpec::Residual(residual)]) {
            match in_word(&spec) {
                // Names are the numbers of layers, and no words for them.
                Some(words) => assert_eq!(in_word(&self::spec("layers.0", &words, 7)), Some(words)),
                None => assert_eq!(spec.kind(), "embedding"),
            }
        }
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
        let layers = network_layers(&network, 7);
        let LayerSpec::Residual(layers::Residual { body, shortcut }) = &layers[1].spec else {
            panic!("{:?}", layers[1]);
        };
        assert_eq!(body[1].name, "layers.1.body.1");
        assert_eq!(shortcut[0].name, "layers.1.shortcut.0");
        assert_eq!(
            layers[2],
            NamedLayer::new("layers.2", LayerSpec::Linear(layers::Linear { out: 7 }))
        );
        assert_eq!(key(&body[1].name), "model.layers[1].body[1]");
    }
}
