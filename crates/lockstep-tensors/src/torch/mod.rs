//! PyTorch's own files: a pickle in a zip archive, with the numbers beside it.
//!
//! A pickle is a program for a small stack machine, which in Python may call anything. The machine here
//! ([`pickle`]) has only the instructions that build plain values; of the objects that a program may
//! name, those that make up a tensor are known, and everything else is refused by its name.

mod archive;
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

/// How files of PyTorch until 1.5 begin: a pickle of a number.
const BEFORE_1_6: &[u8] = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";

/// Whether the file begins as one of PyTorch's does.
pub(crate) fn is_torch(bytes: &[u8]) -> bool {
    is_archive(bytes) || bytes.starts_with(BEFORE_1_6)
}

/// The tensors of a file.
pub(crate) fn tensors(
    path: &Path,
    bytes: &[u8],
) -> Result<Vec<(String, TensorLocation)>, TensorError> {
    if bytes.starts_with(BEFORE_1_6) {
        let path = path.to_path_buf();
        return Err(TensorError::Old { path });
    }
    archive::tensors(bytes).map_err(|fault| fault.in_file(path))
}
