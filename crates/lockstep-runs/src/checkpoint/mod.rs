//! Checkpoints: a run's states, each whole or not there.
//!
//! A checkpoint is a folder `RUN/checkpoints/NUMBER-LABEL` of *parts*, which are plain bytes, and one
//! *manifest*, which names them with their lengths and hashes. The manifest is written last: a folder
//! without one was never finished and does not count. Numbers grow, so the highest is the newest.
//!
//! - A crash at any moment leaves the checkpoints that were whole before, whole. What it left half
//!   done is removed by the next writer.
//! - What was damaged later is recognised: [`Checkpoints::newest`] passes over it to the one before and
//!   says which file is wrong and how.
//! - Old ones are removed only after a new one is safe on the disk.
//!
//! What is in the parts, and in the header that a manifest carries along, is the caller's affair.

mod damage;
mod manifest;
mod read;
mod write;

pub use damage::{Damage, Damaged};
pub use read::{Checkpoint, Found};
pub use write::CheckpointWriter;

use crate::{RunDir, RunsError};
use lockstep_fs::FsError;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The points of a checkpoint's life at which a test can make its writer fail, in their order. Those of
/// a part are reached once for each.
pub const FAILPOINTS: [&str; 10] = [
    "checkpoint.before_part",
    "checkpoint.before_part_rename",
    "checkpoint.after_part",
    "checkpoint.before_manifest",
    "checkpoint.before_rename",
    "checkpoint.after_rename",
    "checkpoint.after_manifest",
    "checkpoint.before_prune",
    "checkpoint.in_prune",
    "checkpoint.after_prune",
];

/// All checkpoints of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoints {
    folder: PathBuf,
}

impl RunDir {
    /// The run's checkpoints.
    pub fn checkpoints(&self) -> Checkpoints {
        Checkpoints::at(&self.path.join("checkpoints"))
    }
}

impl Checkpoints {
    /// Those in `folder`, which need not exist.
    pub fn at(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    /// The folder that holds them.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether there is none that was finished. One that cannot be read counts: it was.
    pub fn is_empty(&self) -> bool {
        self.entries()
            .is_ok_and(|entries| !entries.iter().any(Entry::is_finished))
    }

    /// All checkpoints, finished or not, from the oldest to the newest.
    fn entries(&self) -> Result<Vec<Entry>, RunsError> {
        let reading = || FsError::io("read", &self.folder);
        let found = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            found => found.map_err(reading())?,
        };
        let mut entries = Vec::new();
        for entry in found {
            entries.extend(Entry::of(entry.map_err(reading())?.path()));
        }
        entries.sort_by_key(|entry| entry.number);
        Ok(entries)
    }
}

/// One folder of a checkpoint.
#[derive(Debug)]
struct Entry {
    number: u64,
    path: PathBuf,
}

impl Entry {
    /// What `path` is, if its name is one that a writer gives.
    fn of(path: PathBuf) -> Option<Self> {
        let (number, _) = path.file_name()?.to_str()?.split_once('-')?;
        let number = number.parse().ok()?;
        Some(Self { number, path })
    }

    fn manifest(&self) -> PathBuf {
        self.path.join(manifest::NAME)
    }

    fn is_finished(&self) -> bool {
        // What cannot be looked at is not taken for something that may be removed.
        !matches!(self.manifest().try_exists(), Ok(false))
    }
}
