//! Trained weights as files that other programs read: safetensors under the names and in the layout of a
//! PyTorch `state_dict`, and beside them what one must know to use them.

use crate::network;
use crate::sets::Sets;
use crate::{InputElement, TrainError};
use lockstep_data::TargetKind;
use lockstep_fs::hex;
use lockstep_nn::{Layout, Tensor};
use lockstep_place::Place;
use lockstep_resolve::TrainingSettings;
use lockstep_runs::RunDir;
use safetensors::tensor::{Dtype, View};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::HashMap;

/// The format of `model.json`. It grows when a key changes its meaning or goes.
pub(crate) const VERSION: u32 = 1;

/// What the weights are of; `model.json`.
#[derive(Debug, Serialize)]
struct Card<'a> {
    /// Format of this file.
    version: u32,
    /// Channels, height, width.
    input_shape: [usize; 3],
    /// What the samples are: bytes, or numbers.
    input: InputElement,
    /// The columns of the table that the input comes from, in their order; absent if it was no table.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    column_names: &'a [String],
    /// How bytes become inputs; null if they are only scaled to 0..1.
    normalise: &'a Option<lockstep_job::JobNormalise>,
    /// Class names by number: the label map. Empty if other things are predicted.
    classes: &'a [String],
    /// What is predicted instead of classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    targets: Option<TargetCard>,
    /// The network, as in the job file.
    network: &'a lockstep_job::JobNetwork,
    /// Its layers in order, as in the job file; absent for a network known by its name alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    layers: Option<Vec<lockstep_job::JobLayer>>,
    /// SHA-256 of all tensors' numbers: see [`sha256`].
    weights_sha256: &'a str,
}

/// What a model predicts that does not predict classes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TargetCard {
    /// What was minimised.
    pub(crate) loss: lockstep_job::JobLoss,
    /// What the outputs are called, in their order.
    pub(crate) columns: Vec<String>,
    /// What is predicted is the output times `std` plus `mean`; of labels, the output is the logit.
    pub(crate) mean: Vec<f32>,
    pub(crate) std: Vec<f32>,
}

impl TargetCard {
    fn of(sets: &Sets) -> Option<Self> {
        let loss = match sets.train.target_kind() {
            TargetKind::Classes => return None,
            TargetKind::Numbers => lockstep_job::JobLoss::Mse,
            TargetKind::Labels => lockstep_job::JobLoss::Bce,
        };
        Some(Self {
            loss,
            columns: sets.train.output_names().to_vec(),
            mean: sets.scale.mean().to_vec(),
            std: sets.scale.std().to_vec(),
        })
    }
}

/// SHA-256 of the parameters, then the running statistics, each as PyTorch has it, little-endian: it does not
/// depend on how the numbers lie in the state vector.
pub(crate) fn sha256(layout: &Layout, state: &[f32]) -> String {
    let tensors = layout.tensors.iter();
    sha256_of(tensors.map(|tensor| tensor.to_torch(&state[tensor.range.clone()])))
}

/// SHA-256 of vectors one after the other, little-endian.
pub(crate) fn sha256_of(vectors: impl IntoIterator<Item: AsRef<[f32]>>) -> String {
    let mut hash = Sha256::new();
    let mut bytes = [0; 4096];
    for vector in vectors {
        for piece in vector.as_ref().chunks(bytes.len() / 4) {
            for (to, x) in bytes.chunks_exact_mut(4).zip(piece) {
                to.copy_from_slice(&x.to_le_bytes());
            }
            hash.update(&bytes[..4 * piece.len()]);
        }
        lockstep_progress::advance();
    }
    hex::encode(hash.finalize())
}

/// Writes the model's folder of a run.
pub(crate) fn write_model(
    run: &RunDir,
    settings: &TrainingSettings,
    sets: &Sets,
    layout: &Layout,
    state: &[f32],
    sha256: &str,
) -> Result<(), TrainError> {
    if let Some(path) = run.weights().local() {
        remove_leftovers(path);
    }
    write_safetensors(&run.weights(), tensors(layout, state), None)?;
    let card = Card {
        version: VERSION,
        input_shape: sets.train.shape(),
        input: sets.train.element().into(),
        column_names: sets.train.columns(),
        normalise: &settings.normalise,
        classes: sets.train.class_names(),
        targets: TargetCard::of(sets),
        network: &settings.network,
        layers: network::as_stack(&settings.network),
        weights_sha256: sha256,
    };
    let file = run.model();
    let text = serde_json::to_string_pretty(&card).map_err(|error| TrainError::Weights {
        path: file.to_string().into(),
        reason: error.to_string(),
    })?;
    file.write(format!("{text}\n").as_bytes())?;
    if sets.train.target_kind() != TargetKind::Classes {
        return Ok(());
    }
    let labels = label_map(sets.train.class_names());
    Ok(run.labels().write(labels.as_bytes())?)
}

/// The number of each class by its name, in the order of the numbers; `labels.json`.
fn label_map(classes: &[String]) -> String {
    let pair = |(number, class): (usize, &String)| {
        let class = serde_json::to_string(class).unwrap_or_default();
        format!("  {class}: {number}")
    };
    let pairs: Vec<String> = classes.iter().enumerate().map(pair).collect();
    format!("{{\n{}\n}}\n", pairs.join(",\n"))
}

/// Removes what a worker that was killed while it wrote beside `file` has left. Only rank 0 writes there.
fn remove_leftovers(file: &std::path::Path) {
    let entries = file
        .parent()
        .and_then(|folder| std::fs::read_dir(folder).ok());
    for entry in entries.into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') && name.ends_with(".tmp") {
            // It is only in the way of tidiness.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// A layout's tensors under their names, in their shapes and in PyTorch's order.
pub(crate) fn tensors<'a>(
    layout: &'a Layout,
    state: &'a [f32],
) -> impl Iterator<Item = (&'a str, impl View)> {
    let tensors = layout.tensors.iter();
    tensors.map(move |tensor| (&tensor.name[..], ForPyTorch { tensor, state }))
}

/// Writes named tensors atomically, with a line of metadata.
pub(crate) fn write_safetensors<'a>(
    file: &Place,
    tensors: impl IntoIterator<Item = (&'a str, impl View)>,
    metadata: Option<(&str, String)>,
) -> Result<(), TrainError> {
    let metadata = metadata.map(|(key, value)| HashMap::from([(key.to_owned(), value)]));
    let bytes = safetensors::serialize(tensors, metadata).map_err(|error| TrainError::Weights {
        path: file.to_string().into(),
        reason: error.to_string(),
    })?;
    Ok(file.write(&bytes)?)
}

/// A tensor of the state vector as PyTorch has it. Its numbers are put in order when they are written, so
/// that a large model is not copied whole.
struct ForPyTorch<'a> {
    tensor: &'a Tensor,
    state: &'a [f32],
}

impl View for ForPyTorch<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.tensor.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let numbers = self.tensor.to_torch(&self.state[self.tensor.range.clone()]);
        little_endian(&numbers).into()
    }

    fn data_len(&self) -> usize {
        4 * self.tensor.range.len()
    }
}

/// Numbers as files have them.
pub(crate) fn little_endian(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}
