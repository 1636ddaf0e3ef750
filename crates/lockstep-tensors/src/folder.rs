//! A folder with a model, as Hugging Face lays it out: one file, or several with an index.

use crate::error::TensorError;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// `model.safetensors.index.json`: which file each tensor is in.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// The files of a model's folder, in the order of their names.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>, TensorError> {
    for name in [
        "model.safetensors",
        "model.safetensors.index.json",
        "pytorch_model.bin",
    ] {
        let path = folder.join(name);
        if path.is_file() {
            return match name.ends_with(".json") {
                true => parts(folder, &path),
                false => Ok(vec![path]),
            };
        }
    }
    Err(TensorError::NoModel {
        path: folder.to_path_buf(),
    })
}

/// The files that an index names. They lie beside it: a name that leads elsewhere is refused.
fn parts(folder: &Path, path: &Path) -> Result<Vec<PathBuf>, TensorError> {
    let damaged = |reason: String| TensorError::Damaged {
        path: path.to_path_buf(),
        reason,
    };
    let text = std::fs::read(path).map_err(|source| TensorError::Read {
        path: path.to_path_buf(),
        source,
    })?;
    let index: Index = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
    let names: BTreeSet<String> = index.weight_map.into_values().collect();
    names
        .into_iter()
        .map(|name| {
            let mut steps = Path::new(&name).components();
            match (steps.next(), steps.next()) {
                (Some(Component::Normal(_)), None) => Ok(folder.join(name)),
                _ => Err(damaged(format!(
                    "it names {name:?}, which is not a file beside it"
                ))),
            }
        })
        .collect()
}
