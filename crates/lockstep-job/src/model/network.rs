//! The families of networks, and the stack of the user's own.

use super::JobLayer;
use super::layer::{MAX_CHANNELS, MAX_WIDTH};
use crate::TreesKind;
use crate::field::{Field, Rule};
use crate::keys::{Any, Check, Each, NotEmpty, SchemaLimits, kinds};
use crate::section::Section;

/// The width of the hidden layer that a network has where nobody says more.
const HIDDEN: usize = 128;
use serde_json::{Map, Value, json};

kinds! {
    /// A network, by the name of a family or layer by layer.
    pub enum JobNetwork {
        /// Dense layers with ReLU between them, and a last one to the number of classes.
        "mlp" Mlp {
            /// Width of each hidden layer.
            hidden: Vec<usize> = default(vec![HIDDEN])
                => NotEmpty(1..=MAX_WIDTH, "for example [512, 512]");
            /// Probability that a hidden unit is dropped in a training step.
            dropout: f64 = default(0.0) => Rule::BELOW_ONE;
            /// Whether each hidden layer is batch-normalised before its ReLU.
            batch_norm: bool = default(false) => Any;
        }
        /// A classifier of vectors: linear, batch-norm, ReLU, dropout, and linear to the number of classes.
        "head" Head {
            /// Width of the hidden layer.
            hidden: usize = default(256) => 1..=MAX_WIDTH;
            /// Probability that a hidden unit is dropped in a training step.
            dropout: f64 = default(0.3) => Rule::BELOW_ONE;
        }
        /// Blocks of two convolutions and a pool, a dense layer, and a last one to the number of classes.
        "cnn" Cnn {
            /// Channels of each block's convolutions. A block halves the image.
            channels: Vec<usize> = default(vec![32, 64, 128])
                => NotEmpty(1..=MAX_CHANNELS, "for example [32, 64, 128]");
            /// Probability that a unit is dropped after each block, a number a block. If left out, 0.2
            /// and 0.1 more with every block, at most 0.5.
            dropout: Vec<f64> = otherwise(channels.as_ref().map(|channels| block_dropout(channels.len())))
                => Each(Rule::BELOW_ONE), |field, dropout: Vec<f64>| match &channels {
                    Some(channels) if channels.len() != dropout.len() => field.reject(
                        format!(
                            "must be as long as `channels` ({}), found {}",
                            channels.len(),
                            dropout.len()
                        ),
                        "one number a block",
                    ),
                    _ => Some(dropout),
                };
            /// Width of the dense layer.
            dense: usize = default(128) => 1..=MAX_WIDTH;
            /// Probability that a unit of the dense layer is dropped.
            dense_dropout: f64 = default(0.5) => Rule::BELOW_ONE;
        }
        /// ResNet-18, as torchvision has it.
        "resnet18" ResNet18 {
            /// Whether it begins with a 3x3 convolution and no pool, for images of 32x32 or so.
            small_stem: bool = default(false) => Any;
        }
        /// A stack of the user's own.
        "stack" Stack {
            /// From the input to the output. The last is linear; its `out` may be left out.
            layers: Vec<JobLayer> = need("add `layers = [...]`, the last of them linear") => WholeStack;
        }
    }
}

/// Layers, the last of which gives the classes' scores.
struct WholeStack;

impl SchemaLimits for WholeStack {
    fn describe(&self, schema: &mut Map<String, Value>) {
        schema.insert("minItems".to_owned(), json!(1));
    }
}

impl Check<Vec<JobLayer>> for WholeStack {
    fn read(&self, field: &Field<'_>) -> Option<Vec<JobLayer>> {
        JobLayer::read_stack(field)
    }
}

/// Deeper blocks have more to forget.
fn block_dropout(blocks: usize) -> Vec<f64> {
    (0..blocks)
        .map(|block| (block + 2).min(5) as f64 / 10.0)
        .collect()
}

impl JobNetwork {
    /// Whether any layer is a batch-norm, which needs two rows in every lane.
    pub fn uses_batch_norm(&self) -> bool {
        match self {
            JobNetwork::Mlp { batch_norm, .. } => *batch_norm,
            JobNetwork::Head { .. } | JobNetwork::Cnn { .. } | JobNetwork::ResNet18 { .. } => true,
            JobNetwork::Stack { layers } => layers.iter().any(JobLayer::has_batch_norm),
        }
    }

    /// Which family the section is about.
    pub(super) fn kind(section: &mut Section<'_>) -> Option<&'static str> {
        if section.has("layers") && !section.has("kind") {
            // Known, as every network's.
            section.get("kind");
            return Some("stack");
        }
        let fix = "add `kind = \"mlp\"` with `hidden`, \"head\", \"cnn\" or \"resnet18\", a stack of `layers`, or \
                   \"xgboost\" for trees";
        let field = section.need("kind", fix)?;
        // A job of trees is not read here, but its kind may be the one that was meant.
        let trees = TreesKind::Xgboost.word();
        let all: Vec<&'static str> = [JobNetwork::KINDS, &[trees]].concat();
        match field.one_of(&all)? {
            kind if kind == trees => field.reject("is for trees", "expected a network"),
            kind => Some(kind),
        }
    }
}
