//! The weights of a run as the beginning of another.

use crate::TrainError;
use crate::network;
use crate::snapshot::{Subject, Weights, read_weights};
use crate::weights::{tensors, write_safetensors};
use lockstep_learner::ForkFrom;
use lockstep_nn::{Dims, Model};
use lockstep_place::Place;
use lockstep_resolve::NetworkPlan;

/// Writes weights of the checkpoint at `place` to the file `to`, as weights that a job can begin
/// with. Nothing but the checkpoint is needed: it says of which network they are. Returns of which epoch they are if
/// they are those that were kept as the best.
///
/// # Errors
/// When the checkpoint is damaged, or the file cannot be written.
pub fn export_weights(
    place: &Place,
    which: ForkFrom,
    to: &Place,
) -> Result<Option<u32>, TrainError> {
    let refused = |reason| TrainError::resume(place, reason);
    let Weights {
        subject,
        state,
        best_epoch,
    } = read_weights(place, which)?;
    let model = model_of(&subject).map_err(refused)?;
    let len = model.layout().len();
    if state.len() != len {
        let found = state.len();
        return Err(refused(format!(
            "it has {found} numbers, and its network {len}"
        )));
    }
    write_safetensors(to, tensors(model.layout(), &state), None)?;
    Ok(best_epoch)
}

/// The network that a checkpoint is of.
pub(crate) fn model_of(subject: &Subject) -> Result<Model, String> {
    let mut network = subject.fingerprint.model().clone();
    if let Some(keys) = network.as_object_mut() {
        keys.remove("weights");
    }
    let network: NetworkPlan =
        serde_json::from_value(network).map_err(|error| format!("its network: {error}"))?;
    let [channels, height, width] = subject.input_shape;
    let input = Dims::image(height, width, channels);
    let encoding = subject
        .card
        .as_ref()
        .and_then(|card| card.encoding.as_ref());
    let tables = network::embeddings(encoding);
    let layers = network::layers_behind(tables, &network, subject.classes);
    Model::new(&layers, input, 1).map_err(|error| error.to_string())
}
