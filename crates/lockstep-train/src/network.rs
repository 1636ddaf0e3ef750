//! The layers of a job's network, behind the tables of vectors that its data asks for.

use crate::TrainError;
use lockstep_data::Encoding;
use lockstep_nn::layers::Embedding;
use lockstep_nn::{EmbeddingTable, LayerSpec, NamedLayer, NnError};
use lockstep_resolve::NetworkPlan;

/// What the layer of learned vectors is called, and so the prefix of their tables' names.
const EMBEDDINGS: &str = "embeddings";

/// The tables of vectors for the categories of an encoding.
pub(crate) fn embeddings(encoding: Option<&Encoding>) -> Vec<EmbeddingTable> {
    let embedded = encoding.map_or(&[][..], |encoding| &encoding.embedded);
    let table = |column: &lockstep_data::EmbeddedColumn| EmbeddingTable {
        rows: column.vectors(),
        width: column.width,
    };
    embedded.iter().map(table).collect()
}

/// The network's layers for so many outputs, behind tables of vectors if there are any.
pub(crate) fn layers_behind(
    tables: Vec<EmbeddingTable>,
    network: &NetworkPlan,
    outputs: usize,
) -> Vec<NamedLayer> {
    let mut layers = network.layers(outputs);
    if !tables.is_empty() {
        let embedding = LayerSpec::Embedding(Embedding { tables });
        layers.insert(0, NamedLayer::new(EMBEDDINGS, embedding));
    }
    layers
}

/// Why the network cannot be built, with the key of the job file that is wrong.
pub(crate) fn refusal(network: &NetworkPlan, source: NnError) -> TrainError {
    let key = network.wrong_key(&source);
    TrainError::Model { key, source }
}
