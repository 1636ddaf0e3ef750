//! `[model]`: the network, and the weights it begins with.

mod layer;
mod network;
mod pair;

pub use layer::JobLayer;
pub use network::JobNetwork;
pub use pair::Pair;

use crate::keys::{Any, keys};
use crate::section::Section;
use std::path::PathBuf;

keys! {
    /// The network and the weights it begins with.
    pub struct JobModel given (kind: &str) {
        /// The network.
        #[serde(flatten)]
        network: JobNetwork = flat(|section| JobNetwork::read_keys(kind, section)) => Any;
        /// A file whose weights training begins with, in place of random ones: safetensors, or one of
        /// PyTorch's. A last layer for another number of classes is left out of it.
        weights: Option<PathBuf> = optional => Any;
    }
}

impl JobModel {
    pub(crate) fn read(mut section: Section<'_>) -> Option<JobModel> {
        let Some(kind) = JobNetwork::kind(&mut section) else {
            section.give_up();
            return None;
        };
        section.is_of_kind(kind);
        let model = JobModel::read_keys(&mut section, kind);
        section.finish();
        model
    }
}
