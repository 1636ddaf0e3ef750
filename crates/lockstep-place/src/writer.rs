//! A file that is being written, and is seen by others when it is whole.

use crate::place::PlaceKind;
use crate::remote::Upload;
use crate::{Place, PlaceError, local};
use lockstep_base::fs::{AtomicFile, FsError};
use std::io::Write;
use std::path::PathBuf;

/// A file that is being written. Dropped without [`commit`](PlaceWriter::commit), it leaves no trace.
///
/// On this machine the bytes go to a hidden file beside it. To a store they go in pieces of some MiB,
/// which the store puts together at the end, so that neither memory nor the store's limit for one
/// request bounds the length.
#[derive(Debug)]
pub struct PlaceWriter(Writing);

#[derive(Debug)]
enum Writing {
    Local(AtomicFile, PathBuf),
    Remote(Upload),
}

impl PlaceWriter {
    pub(crate) fn open(place: &Place) -> Result<PlaceWriter, PlaceError> {
        Ok(PlaceWriter(match &place.0 {
            PlaceKind::Local(path) => Writing::Local(local::writer(path)?, path.clone()),
            PlaceKind::Remote(remote) => Writing::Remote(remote.upload()?),
        }))
    }

    /// On this machine, lets nobody but its user read the file. Who may read what a store has is the store's to say.
    pub(crate) fn make_private(&self) -> Result<(), PlaceError> {
        match &self.0 {
            Writing::Local(file, _) => Ok(file.make_private()?),
            Writing::Remote(_) => Ok(()),
        }
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// When the disk is full or the store cannot be reached.
    pub fn write_all(&mut self, bytes: &[u8]) -> Result<(), PlaceError> {
        match &mut self.0 {
            Writing::Local(file, path) => {
                let written = file.write_all(bytes);
                Ok(written.map_err(FsError::io("write", path))?)
            }
            Writing::Remote(upload) => upload.write_all(bytes),
        }
    }

    /// Gives the file its name. It outlives a power cut when this returns.
    ///
    /// # Errors
    /// When the disk or the store refuses; what had the name before has it still.
    pub fn commit(self) -> Result<(), PlaceError> {
        match self.0 {
            Writing::Local(file, _) => Ok(file.commit()?),
            Writing::Remote(upload) => upload.commit(),
        }
    }

    /// Gives the file its name, whose bytes outlive a power cut when this returns. That the name does, too,
    /// is for [`Place::sync`] of its folder, once for many files.
    ///
    /// # Errors
    /// As [`commit`](PlaceWriter::commit).
    pub fn commit_before_sync(self) -> Result<(), PlaceError> {
        match self.0 {
            Writing::Local(file, _) => {
                file.sync()?;
                Ok(file.commit_unsynced()?)
            }
            Writing::Remote(upload) => upload.commit(),
        }
    }
}
