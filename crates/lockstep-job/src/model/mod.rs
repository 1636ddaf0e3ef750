//! `[model]`: the network, and the weights it begins with.

mod layer;
mod network;
mod pair;

pub use layer::LayerSpec;
pub use network::Network;
pub use pair::Pair;

use crate::section::Section;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::PathBuf;

/// The network and the weights it begins with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// The network.
    #[serde(flatten)]
    pub network: Network,
    /// A safetensors file whose weights training begins with, in place of random ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<PathBuf>,
}

impl Model {
    pub(crate) fn read(mut section: Section<'_>) -> Option<Model> {
        let Some(kind) = Network::kind(&mut section) else {
            section.give_up();
            return None;
        };
        section.is_of_kind(kind);
        let network = Network::read_keys(kind, &mut section);
        let weights = section.maybe("weights", |field| field.path());
        section.finish();
        Some(Model {
            network: network?,
            weights: weights?,
        })
    }
}

/// As serde writes it: `weights` is a key of every kind of network.
impl JsonSchema for Model {
    fn schema_name() -> Cow<'static, str> {
        "Model".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let weights = serde_json::json!({
            "type": "string",
            "description": "A safetensors file whose weights training begins with, in place of random ones. \
                            A last layer for another number of classes is left out of it.",
        });
        let mut schema = Network::json_schema(generator);
        let kinds = schema
            .get_mut("oneOf")
            .and_then(|kinds| kinds.as_array_mut());
        for kind in kinds.into_iter().flatten() {
            kind["properties"]["weights"] = weights.clone();
        }
        schema
    }
}
