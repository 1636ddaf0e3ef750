//! A package that somebody published for everyone, brought into the cache.
//!
//! It is known by its hash, and unpacked as it is, into a folder that takes its name in one step: whoever finds the folder
//! finds all of it.

use crate::{Access, Place, PlaceError};
use lockstep_base::fs::{CacheDir, sha256};
use lockstep_base::offline;
use lockstep_base::zip::{Limits, unpack};
use std::fs;
use std::path::Path;

/// How often a request is sent again.
const RETRIES: u32 = 2;

/// A published ZIP archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    /// Its URL.
    pub address: &'static str,
    /// The hash of its bytes, in hexadecimal digits.
    pub sha256: &'static str,
}

impl Package {
    /// Downloads it, and unpacks it into `folder` of the cache if `check` finds nothing wrong with what is in it.
    /// `file` is one of its files, by which it is known whether another process was quicker.
    ///
    /// # Errors
    /// When downloads are forbidden, the package cannot be had or is another one, the cache cannot be written, or `check`
    /// refuses it.
    pub fn bring<E: From<PlaceError>>(
        &self,
        (cache, folder): (&CacheDir, &Path),
        file: &str,
        check: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<(), E> {
        let cannot_write = |source| PlaceError::io("write", folder, source);
        let bytes = self.download()?;
        let new = tempfile::tempdir_in(cache.path()).map_err(cannot_write)?;
        let unpacked = new.path().join("package");
        let refused = |error: lockstep_base::zip::UnpackError| self.refused(error.to_string());
        unpack(&bytes, &unpacked, &Limits::default()).map_err(refused)?;
        check(&unpacked)?;
        // Of several processes that bring it at once the first wins: a folder takes the place of an empty one only, so
        // nobody loses what was there.
        match fs::rename(&unpacked, folder) {
            Ok(()) => Ok(()),
            Err(_) if folder.join(file).is_file() => Ok(()),
            Err(error) => Err(cannot_write(error).into()),
        }
    }

    /// Its bytes, which are those that were published.
    fn download(&self) -> Result<Vec<u8>, PlaceError> {
        if offline::is_forbidden() {
            let place = self.address.to_owned();
            return Err(PlaceError::Offline { place });
        }
        let access = Access {
            retries: RETRIES,
            ..Access::default()
        };
        let bytes = Place::parse(self.address, &access)?.read()?;
        let found = sha256(&bytes);
        if found != self.sha256 {
            return Err(self.refused(format!(
                "its SHA-256 is {found} instead of {}: it is not what was published",
                self.sha256
            )));
        }
        Ok(bytes)
    }

    fn refused(&self, why: String) -> PlaceError {
        let place = self.address.to_owned();
        PlaceError::Package { place, why }
    }
}
