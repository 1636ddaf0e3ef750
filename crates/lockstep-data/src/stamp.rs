//! What tells one version of a set's files from another, without reading them.

use crate::DataError;
use crate::file::regular;
use crate::layout::Identity;
use lockstep_place::Place;
use sha2::{Digest, Sha256};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// A hash of pieces, each with its length, so that no two lists of pieces look alike.
#[derive(Debug, Default)]
pub(crate) struct Stamp(Sha256);

impl Stamp {
    pub(crate) fn piece(&mut self, piece: &[u8]) {
        self.0.update((piece.len() as u64).to_le_bytes());
        self.0.update(piece);
    }

    /// A file by its name within the set, its size and what the place calls its version.
    pub(crate) fn entry(&mut self, name: &str, size: u64, version: &str) {
        self.piece(name.as_bytes());
        self.piece(&size.to_le_bytes());
        self.piece(version.as_bytes());
    }

    /// A local file, by its size and time of modification.
    pub(crate) fn file(&mut self, path: &Path) -> Result<(), DataError> {
        let metadata = regular(path)?;
        let modified = metadata.modified().map_err(DataError::io("open", path))?;
        let nanoseconds = match modified.duration_since(UNIX_EPOCH) {
            Ok(after) => after.as_nanos() as i128,
            Err(before) => -(before.duration().as_nanos() as i128),
        };
        self.entry("", metadata.len(), &nanoseconds.to_string());
        Ok(())
    }

    pub(crate) fn bytes(self) -> [u8; 32] {
        self.0.finalize().into()
    }

    pub(crate) fn identity(self) -> Identity {
        let bytes = self.bytes();
        let words = bytes.as_chunks().0;
        std::array::from_fn(|i| u64::from_le_bytes(words[i]))
    }
}

/// The whole name of a local file.
pub(crate) fn whole(path: &Path) -> Result<Vec<u8>, DataError> {
    let whole = path.canonicalize().map_err(DataError::io("open", path))?;
    Ok(whole.as_os_str().as_bytes().to_owned())
}

/// The whole name of a place.
pub(crate) fn whole_place(place: &Place) -> Result<Vec<u8>, DataError> {
    match place.local() {
        Some(path) => whole(path),
        None => Ok(place.to_string().into_bytes()),
    }
}
