//! `[model]`: the network, by the name of a family or layer by layer.

use crate::field::{Field, Rule};
use crate::section::Section;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Model {
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
    /// A stack of the user's own.
    Stack {
        /// From the input to the output. The last is linear; its `out` may be left out.
        #[schemars(length(min = 1))]
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
        #[schemars(range(min = 1))]
        out: Option<usize>,
    },
    /// `max(x, 0)`.
    Relu,
    /// Drops units at random in training.
    Dropout {
        /// Probability that a unit is dropped.
        #[schemars(extend("minimum" = 0, "exclusiveMaximum" = 1))]
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

/// Units of a layer: far beyond any dense layer, and such that no product of two overflows.
const MAX_WIDTH: usize = 1 << 24;

impl Model {
    pub(crate) fn read(mut section: Section<'_>) -> Option<Model> {
        let kind = if section.has("layers") && !section.has("kind") {
            Some("stack")
        } else {
            let fix = "add `kind = \"mlp\"` with `hidden`, or a stack of `layers`";
            let field = section.need("kind", fix);
            field.and_then(|field| field.one_of(&["mlp", "stack"]))
        };
        let Some(kind) = kind else {
            section.give_up();
            return None;
        };
        section.get("kind");
        section.is_of_kind(kind);
        let model = match kind {
            "mlp" => read_mlp(&mut section),
            _ => section
                .need("layers", "add `layers = [...]`, the last of them linear")
                .and_then(|field| read_stack(&field)),
        };
        section.finish();
        model
    }
}

fn read_mlp(section: &mut Section<'_>) -> Option<Model> {
    let hidden = section
        .need("hidden", "add `hidden = [512, 512]`")
        .and_then(|field| {
            let hidden = field.all(|width| width.integer(1..=MAX_WIDTH))?;
            if hidden.is_empty() {
                return field.reject("must not be empty", "for example [512, 512]");
            }
            Some(hidden)
        });
    let dropout = section.or("dropout", 0.0, |field| field.number(Rule::BELOW_ONE));
    let batch_norm = section.or("batch_norm", false, |field| field.boolean());
    Some(Model::Mlp {
        hidden: hidden?,
        dropout: dropout?,
        batch_norm: batch_norm?,
    })
}

fn read_stack(field: &Field<'_>) -> Option<Model> {
    let fields = field.items()?;
    let Some((last, before)) = fields.split_last() else {
        return field.reject("must not be empty", "for example [{ kind = \"linear\" }]");
    };
    // Reads them all before giving up, so that every mistake is reported.
    let before: Vec<Option<LayerSpec>> = before
        .iter()
        .map(|field| read_layer(field.section()?, Place::Inside))
        .collect();
    let last_layer = read_layer(last.section()?, Place::Last)?;
    if !matches!(last_layer, LayerSpec::Linear { .. }) {
        return last.reject(
            "must be linear, since it is the last layer",
            "add { kind = \"linear\" } after it: one output a class",
        );
    }
    let mut layers = before.into_iter().collect::<Option<Vec<_>>>()?;
    layers.push(last_layer);
    Some(Model::Stack { layers })
}

/// Where in its stack a layer is.
#[derive(PartialEq)]
enum Place {
    Inside,
    Last,
}

fn read_layer(mut section: Section<'_>, place: Place) -> Option<LayerSpec> {
    let kinds = ["linear", "relu", "dropout", "batch-norm"];
    let kind = section.need("kind", "add a `kind`: linear, relu, dropout or batch-norm");
    let Some(kind) = kind.and_then(|field| field.one_of(&kinds)) else {
        section.give_up();
        return None;
    };
    section.is_of_kind(kind);
    let width = |field: Field<'_>| field.integer(1..=MAX_WIDTH);
    let layer = match kind {
        "linear" if place == Place::Last => {
            let out = section.maybe("out", width);
            out.map(|out| LayerSpec::Linear { out })
        }
        "linear" => {
            let out = section.need("out", "add its width, for example `out = 512`");
            out.and_then(width)
                .map(|out| LayerSpec::Linear { out: Some(out) })
        }
        "dropout" => section
            .need("p", "add the probability, for example `p = 0.25`")
            .and_then(|field| field.number(Rule::BELOW_ONE))
            .map(|p| LayerSpec::Dropout { p }),
        "relu" => Some(LayerSpec::Relu),
        _ => Some(LayerSpec::BatchNorm),
    };
    section.finish();
    layer
}
