//! A file that is being written, and is seen by others when it is whole.

use crate::local::LocalPath;
use crate::place::PlaceKind;
use crate::remote::Upload;
use crate::{Place, PlaceError, local};
use lockstep_base::fs::beneath::Held;
use lockstep_base::fs::{AtomicFile, FsError};
use std::io::Write;

/// A file that is being written. Dropped without [`commit`](PlaceWriter::commit), it leaves no trace.
///
/// On this machine the bytes go to a hidden file beside it. To a store they go in pieces of some MiB,
/// which the store puts together at the end, so that neither memory nor the store's limit for one
/// request bounds the length.
#[derive(Debug)]
pub struct PlaceWriter(Writing);

#[derive(Debug)]
enum Writing {
    /// The folder is held until the file has its name.
    Local(AtomicFile, LocalPath, Held),
    Remote(Upload),
}

impl PlaceWriter {
    pub(crate) fn open(place: &Place) -> Result<PlaceWriter, PlaceError> {
        Ok(PlaceWriter(match &place.0 {
            PlaceKind::Local(path) => {
                let (file, held) = local::writer(path)?;
                Writing::Local(file, path.clone(), held)
            }
            PlaceKind::Remote(remote) => Writing::Remote(remote.upload()?),
        }))
    }

    /// On this machine, lets nobody but its user read the file. Who may read what a store has is the store's to say.
    pub(crate) fn make_private(&self) -> Result<(), PlaceError> {
        match &self.0 {
            Writing::Local(file, _, _) => Ok(file.make_private()?),
            Writing::Remote(_) => Ok(()),
        }
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// When the disk is full or the store cannot be reached.
    pub fn write_all(&mut self, bytes: &[u8]) -> Result<(), PlaceError> {
        match &mut self.0 {
            Writing::Local(file, path, _) => {
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
            Writing::Local(file, path, _held) => {
                Ok(file.commit().map_err(|error| path.named(error))?)
            }
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
            Writing::Local(file, path, _held) => {
                let done = file.sync().and_then(|()| file.commit_unsynced());
                Ok(done.map_err(|error| path.named(error))?)
            }
            Writing::Remote(upload) => upload.commit(),
        }
    }
}
