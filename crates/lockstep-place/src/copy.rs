//! A file of this machine with the content of a place, for what can only read such.

use crate::{Place, PlaceError};
use lockstep_base::fs::beneath::Purpose;
use lockstep_base::fs::{FsError, random_letters};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How much of the content is in memory at a time.
const PIECE: u64 = 8 << 20;

/// A path to a place's content: of the file itself if it is one of this machine, else of a copy that is
/// gone when this is dropped and that only this user can read.
#[derive(Debug)]
pub struct LocalCopy {
    path: PathBuf,
    temporary: bool,
}

impl LocalCopy {
    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LocalCopy {
    fn drop(&mut self) {
        if self.temporary {
            // What cannot be removed lies in the folder for temporary files.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Place {
    /// A path to the content, of one version.
    ///
    /// # Errors
    /// When the place cannot be read, or the copy cannot be written.
    pub fn local_copy(&self) -> Result<LocalCopy, PlaceError> {
        if let Some(path) = self.local() {
            // It must be a file that may be read, whatever then reads it by its path.
            if let Some(opened) = self.open_local(Purpose::Read) {
                opened.map_err(|source| PlaceError::io("read", path, source))?;
            }
            return Ok(LocalCopy {
                path: path.to_owned(),
                temporary: false,
            });
        }
        let entry = self.entry()?.ok_or_else(|| PlaceError::NotFound {
            place: self.to_string(),
        })?;
        let name = format!("lockstep-{}", random_letters::<16>()?);
        let path = std::env::temp_dir().join(name);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(FsError::io("write", &path))?;
        let copy = LocalCopy {
            path,
            temporary: true,
        };
        for start in (0..entry.size).step_by(PIECE as usize) {
            let end = (start + PIECE).min(entry.size);
            let piece = self.read_range_of(&entry, start..end)?;
            file.write_all(&piece)
                .map_err(FsError::io("write", copy.path()))?;
        }
        Ok(copy)
    }
}
