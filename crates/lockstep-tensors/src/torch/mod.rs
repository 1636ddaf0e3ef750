//! PyTorch's own files: pickles, alone (until 1.5) or in a zip archive with the numbers beside them.
//!
//! A pickle is a program for a small stack machine, which in Python may call anything. The machine here
//! ([`pickle`]) has only the instructions that build plain values; of the objects that a program may
//! name, those that make up a tensor are known, and everything else is refused by its name.

mod archive;
mod legacy;
mod objects;
mod pickle;

use crate::error::TensorError;
use crate::file::TensorLocation;
use lockstep_base::zip::is_archive;
use std::path::Path;

/// What went wrong below the level at which the path is known.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    Damaged(String),
    Unknown(String),
    Unsupported(String),
}

impl Fault {
    fn damaged(reason: impl Into<String>) -> Self {
        Self::Damaged(reason.into())
    }

    /// An object that is not known, by its name: as much of it as can be read.
    fn unknown(module: &str, name: &str) -> Self {
        const LONGEST: usize = 200;
        let whole = module.chars().chain(['.']).chain(name.chars());
        Self::Unknown(whole.take(LONGEST).collect())
    }

    fn in_file(self, path: &Path) -> TensorError {
        let path = path.to_path_buf();
        match self {
            Self::Damaged(reason) => TensorError::Damaged { path, reason },
            Self::Unknown(global) => TensorError::Unknown { path, global },
            Self::Unsupported(what) => TensorError::Unsupported { path, what },
        }
    }
}

/// Whether the file begins as one of PyTorch's does.
pub(crate) fn is_torch(bytes: &[u8]) -> bool {
    is_archive(bytes) || legacy::is_legacy(bytes)
}

/// The tensors of a file.
pub(crate) fn tensors(
    path: &Path,
    bytes: &[u8],
) -> Result<Vec<(String, TensorLocation)>, TensorError> {
    let found = if is_archive(bytes) {
        archive::tensors(bytes)
    } else {
        legacy::tensors(bytes)
    };
    found.map_err(|fault| fault.in_file(path))
}
