//! `[model]`: the network, by the name of a family or layer by layer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Model {
    /// Dense layers with ReLU between them, and a last one to the number of classes.
    Mlp {
        /// Width of each hidden layer.
        hidden: Vec<usize>,
        /// Probability that a hidden unit is dropped in a training step.
        #[serde(default)]
        dropout: f64,
        /// Whether each hidden layer is batch-normalised before its ReLU.
        #[serde(default)]
        batch_norm: bool,
    },
    /// A stack of the user's own.
    Stack {
        /// From the input to the output. The last is linear; its `out` may be left out.
        layers: Vec<LayerSpec>,
    },
}

/// One layer of a stack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LayerSpec {
    /// A dense layer with a bias.
    Linear {
        /// Width of its output. Only the last layer may leave it out: then it is the number of
        /// classes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        out: Option<usize>,
    },
    /// `max(x, 0)`.
    Relu,
    /// Drops units at random in training.
    Dropout {
        /// Probability that a unit is dropped.
        p: f64,
    },
    /// Batch-norm over each unit, with a learned scale and shift.
    BatchNorm,
}

impl Model {
    /// The layers that the model stands for, from the input to the output.
    ///
    /// An MLP's hidden layer is linear, batch-norm if asked for, ReLU, dropout if there is any; the
    /// last layer is always linear.
    pub fn layers(&self) -> Vec<LayerSpec> {
        match self {
            Model::Stack { layers } => layers.clone(),
            Model::Mlp {
                hidden,
                dropout,
                batch_norm,
            } => {
                let mut layers = Vec::new();
                for &width in hidden {
                    layers.push(LayerSpec::Linear { out: Some(width) });
                    if *batch_norm {
                        layers.push(LayerSpec::BatchNorm);
                    }
                    layers.push(LayerSpec::Relu);
                    if *dropout > 0.0 {
                        layers.push(LayerSpec::Dropout { p: *dropout });
                    }
                }
                layers.push(LayerSpec::Linear { out: None });
                layers
            }
        }
    }

    /// Whether any layer is a batch-norm, which needs two rows in every lane.
    pub fn uses_batch_norm(&self) -> bool {
        self.layers().contains(&LayerSpec::BatchNorm)
    }
}
