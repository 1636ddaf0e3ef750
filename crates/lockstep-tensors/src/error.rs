//! Why a file of tensors cannot be used.

use crate::element::Element;
use std::path::PathBuf;

/// Why a file of tensors cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TensorError {
    /// The system would not give the file.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A folder without a model in it.
    #[error(
        "there is no model in the folder {}; it should hold model.safetensors, \
         model.safetensors.index.json with its parts, or pytorch_model.bin",
        path.display()
    )]
    NoModel {
        /// Which folder.
        path: PathBuf,
    },
    /// None of the formats.
    #[error(
        "{} is neither a safetensors file nor one of PyTorch's (.pth, .pt, .bin)",
        path.display()
    )]
    Format {
        /// Which file.
        path: PathBuf,
    },
    /// A file that contradicts itself or ends too early.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong, and where.
        reason: String,
    },
    /// A pickle that asks for more than tensors.
    #[error(
        "{} needs the Python object {global} to be read, which is not executed here; \
         save the plain weights: torch.save(model.state_dict(), path)",
        path.display()
    )]
    Unknown {
        /// Which file.
        path: PathBuf,
        /// The object's module and name.
        global: String,
    },
    /// A part of a format that is not supported.
    #[error("{} has {what}, which is not supported", path.display())]
    Unsupported {
        /// Which file.
        path: PathBuf,
        /// What it has.
        what: String,
    },
    /// A name that is not in the file.
    #[error(
        "{} has no tensor {name}; {}",
        path.display(),
        match nearest { Some(name) => format!("the nearest is {name}"), None => "it is empty".into() }
    )]
    Missing {
        /// Which file.
        path: PathBuf,
        /// The name that was asked for.
        name: String,
        /// The name that looks most like it.
        nearest: Option<String>,
    },
    /// A tensor of whole numbers where weights are expected.
    #[error(
        "the tensor {name} in {} holds {found} numbers; f32, f16, bf16 and f64 can be read",
        path.display()
    )]
    Element {
        /// Which file.
        path: PathBuf,
        /// Which tensor.
        name: String,
        /// What it holds.
        found: Element,
    },
}
