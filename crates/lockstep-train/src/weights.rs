//! Trained weights as files that other programs read: safetensors under the names and in the layout of a
//! PyTorch `state_dict`, and beside them what one must know to use them.

use crate::TrainError;
use crate::card::Card;
use lockstep_base::fs::hex;
use lockstep_nn::{Layout, Tensor};
use lockstep_place::Place;
use lockstep_runs::RunDir;
use safetensors::tensor::{Dtype, View};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::HashMap;

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
        lockstep_base::progress::advance();
    }
    hex::encode(hash.finalize())
}

/// Writes the model's folder of a run.
pub(crate) fn write_model(
    run: &RunDir,
    card: &Card,
    layout: &Layout,
    state: &[f32],
    sha256: &str,
) -> Result<(), TrainError> {
    if let Some(path) = run.weights().local() {
        remove_leftovers(path);
    }
    write_safetensors(&run.weights(), tensors(layout, state), None)?;
    let card = card.clone().with_weights(sha256);
    let file = run.model();
    let text = serde_json::to_string_pretty(&card).map_err(|error| TrainError::Weights {
        path: file.to_string().into(),
        reason: error.to_string(),
    })?;
    file.write(format!("{text}\n").as_bytes())?;
    if !card.is_of_classes() {
        return Ok(());
    }
    let labels = label_map(&card.classes);
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
