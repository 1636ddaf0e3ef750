//! What tells one version of a set's files from another, without reading them.

use crate::DataError;
use crate::file::regular;
use crate::layout::{Identity, words};
use lockstep_place::Place;
use sha2::{Digest, Sha256};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
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

    /// A local file, by its size, its time of modification, and its inode with the time of its last change of
    /// any kind: that time cannot be set back, so another content of equal size and time is noticed.
    pub(crate) fn file(&mut self, path: &Path) -> Result<(), DataError> {
        let metadata = regular(path)?;
        let modified = metadata.modified().map_err(DataError::io("open", path))?;
        let nanoseconds = match modified.duration_since(UNIX_EPOCH) {
            Ok(after) => after.as_nanos() as i128,
            Err(before) => -(before.duration().as_nanos() as i128),
        };
        self.entry("", metadata.len(), &nanoseconds.to_string());
        let (inode, seconds) = (metadata.ino(), metadata.ctime());
        for number in [inode as i64, seconds, metadata.ctime_nsec()] {
            self.piece(&number.to_le_bytes());
        }
        Ok(())
    }

    pub(crate) fn bytes(self) -> [u8; 32] {
        self.0.finalize().into()
    }

    pub(crate) fn identity(self) -> Identity {
        words(&self.bytes())
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
