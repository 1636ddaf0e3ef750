//! Changing what a place holds: whole files, in one step each, and under conditions where two might
//! write at once.

use crate::place::on;
use crate::{Place, PlaceError, PlaceWriter, local};
use std::io::ErrorKind;

/// One content that a file had: the store's mark of it, or on this machine the file that had the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The store's ETag, as it wrote it, or what stands for it on this machine.
    pub(crate) tag: Option<String>,
    /// The number of the version, where the store counts them.
    pub(crate) number: Option<String>,
}

impl Version {
    fn local(tag: String) -> Version {
        Version {
            tag: Some(tag),
            number: None,
        }
    }
}

impl Place {
    /// Replaces the content by `bytes` in one step; folders on the way are made.
    ///
    /// # Errors
    /// When the place cannot be written; its content is then as it was.
    pub fn write(&self, bytes: &[u8]) -> Result<(), PlaceError> {
        let mut writer = self.writer()?;
        writer.write_all(bytes)?;
        writer.commit()
    }

    /// As [`write`](Place::write), and on this machine nobody but its user may read the file.
    ///
    /// # Errors
    /// As there.
    pub fn write_private(&self, bytes: &[u8]) -> Result<(), PlaceError> {
        let mut writer = self.writer()?;
        writer.make_private()?;
        writer.write_all(bytes)?;
        writer.commit()
    }

    /// Begins to write a content whose length need not be known; folders on the way are made.
    ///
    /// # Errors
    /// When the place cannot be written.
    pub fn writer(&self) -> Result<PlaceWriter, PlaceError> {
        PlaceWriter::open(self)
    }

    /// Writes `bytes` if there is no such file yet: of several who do so at once, one succeeds. Returns
    /// the version that was written; none when there was a file.
    ///
    /// # Errors
    /// When the place cannot be written.
    pub fn create_new(&self, bytes: &[u8]) -> Result<Option<Version>, PlaceError> {
        on!(self,
            path => Ok(local::create_new(path, bytes)?.map(Version::local)),
            remote => remote.create_new(bytes))
    }

    /// Replaces the content by `bytes` if it is still the one of `version`: of several who do so at once,
    /// one succeeds. Returns the version that was written; none when there is another content, or none.
    ///
    /// # Errors
    /// When the place cannot be written.
    pub fn replace_if(
        &self,
        version: &Version,
        bytes: &[u8],
    ) -> Result<Option<Version>, PlaceError> {
        on!(self,
            path => Ok(local::replace_if(path, version.tag.as_deref(), bytes)?.map(Version::local)),
            remote => remote.replace_if(version, bytes))
    }

    /// The whole content and its version; nothing if there is no such file.
    ///
    /// # Errors
    /// When the place cannot be read.
    pub fn read_versioned(&self) -> Result<Option<(Vec<u8>, Version)>, PlaceError> {
        let read = on!(self,
            path => local::read_versioned(path).map(|(bytes, tag)| (bytes, Version::local(tag))),
            remote => remote.read_versioned());
        match read {
            Err(PlaceError::NotFound { .. }) => Ok(None),
            Err(PlaceError::Io { source, .. }) if source.kind() == ErrorKind::NotADirectory => {
                Ok(None)
            }
            read => read.map(Some),
        }
    }

    /// Removes the file. One that is missing is as good as removed.
    ///
    /// # Errors
    /// When the place does not allow it or cannot be reached.
    pub fn delete(&self) -> Result<(), PlaceError> {
        on!(self, path => local::delete(path), remote => remote.delete())
    }

    /// Removes the folder with all that is in it. One that is missing is as good as removed.
    ///
    /// # Errors
    /// When the place does not allow it or cannot be reached; then a part may be left.
    pub fn delete_all(&self) -> Result<(), PlaceError> {
        on!(self, path => local::delete_all(path), _remote => {
            for entry in self.list()? {
                self.join(&entry.path)?.delete()?;
            }
            Ok(())
        })
    }

    /// The names of the folders that lie directly in this one, sorted. A folder that is missing has none.
    ///
    /// # Errors
    /// When the place is a file, a web server, or cannot be reached.
    pub fn folders(&self) -> Result<Vec<String>, PlaceError> {
        let mut names = on!(self, path => local::folders(path), remote => remote.folders())?;
        names.sort_unstable();
        Ok(names)
    }

    /// Makes the folder and those on the way to it. In a store there is nothing to do: it knows no folders.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn make_folder(&self) -> Result<(), PlaceError> {
        on!(self, path => local::make_folder(path), _remote => Ok(()))
    }

    /// Makes the folder, and says whether that was the first time: of several who do so at once, one is
    /// told so. In a store, which knows no folders, everyone is.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn make_new_folder(&self) -> Result<bool, PlaceError> {
        on!(self, path => local::make_new_folder(path), _remote => Ok(true))
    }

    /// Waits until the names in the folder outlive a power cut. In a store what was written does already.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn sync(&self) -> Result<(), PlaceError> {
        on!(self, path => Ok(lockstep_base::fs::sync_folder(path)?), _remote => Ok(()))
    }
}
