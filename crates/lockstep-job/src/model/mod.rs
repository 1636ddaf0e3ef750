//! `[model]`: the network, and the weights it begins with.

mod layer;
mod network;
mod pair;

pub use layer::LayerSpec;
pub use network::Network;
pub use pair::Pair;

use crate::keys::{Any, keys};
use crate::section::Section;
use std::path::PathBuf;

keys! {
    /// The network and the weights it begins with.
    pub struct Model given (kind: &str) {
        /// The network.
        #[serde(flatten)]
        network: Network = flat(|section| Network::read_keys(kind, section)) => Any;
        /// A file whose weights training begins with, in place of random ones: safetensors, or one of
        /// PyTorch's. A last layer for another number of classes is left out of it.
        weights: Option<PathBuf> = optional => Any;
    }
}

impl Model {
    pub(crate) fn read(mut section: Section<'_>) -> Option<Model> {
        let Some(kind) = Network::kind(&mut section) else {
            section.give_up();
            return None;
        };
        section.is_of_kind(kind);
        let model = Model::read_keys(&mut section, kind);
        section.finish();
        model
    }
}
