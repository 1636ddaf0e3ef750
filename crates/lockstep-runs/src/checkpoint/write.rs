//! Writing checkpoints, and removing old ones.

use super::manifest::{self, FORMAT, Manifest, Part, is_plain};
use super::{Checkpoints, Entry};
use crate::RunsError;
use lockstep_failpoint as failpoint;
use lockstep_fs::{AtomicFile, FsError, sha256, sync_folder};
use serde_json::Value;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes the checkpoints of a run. There must be one writer at a time: whoever holds the run's lock.
#[derive(Debug)]
pub struct CheckpointWriter {
    folder: PathBuf,
    keep: usize,
    /// The number of the next one.
    next: u64,
}

impl Checkpoints {
    /// Prepares for writing: makes the folder, and removes what a writer before left half done. The
    /// newest `keep` will stay; at least one does.
    ///
    /// # Errors
    /// When the folder cannot be made, read or cleaned.
    pub fn writer(&self, keep: usize) -> Result<CheckpointWriter, RunsError> {
        fs::create_dir_all(&self.folder).map_err(FsError::io("write", &self.folder))?;
        let entries = self.entries()?;
        for entry in entries.iter().filter(|entry| !entry.is_finished()) {
            fs::remove_dir_all(&entry.path).map_err(FsError::io("remove", &entry.path))?;
        }
        Ok(CheckpointWriter {
            folder: self.folder.clone(),
            keep: keep.max(1),
            next: entries.last().map_or(1, |newest| newest.number + 1),
        })
    }
}

impl CheckpointWriter {
    /// Writes a checkpoint of these parts and removes those that are too old. Returns its folder, which
    /// is on the disk, its name included, when this returns.
    ///
    /// # Errors
    /// When the disk refuses. What was there before is still there, and nothing of this one is, unless
    /// the disk refuses that too; then the next writer removes it.
    ///
    /// # Panics
    /// When the label or a part's name is not a plain file name.
    pub fn write(
        &mut self,
        label: &str,
        header: Value,
        parts: &[(&str, &[u8])],
    ) -> Result<PathBuf, RunsError> {
        assert!(is_plain(label), "`{label}` is no label");
        let path = self.folder.join(format!("{:06}-{label}", self.next));
        self.next += 1;
        if let Err(error) = write_all(&path, header, parts) {
            // It would take the room that the next one may need. The first error is the one to report.
            let _ = fs::remove_dir_all(&path);
            return Err(error.into());
        }
        // The name of the new folder lies in the one that holds it.
        sync_folder(&self.folder)?;
        edge("checkpoint.after_manifest", &path)?;
        self.prune()?;
        Ok(path)
    }

    /// Removes all but the newest. Their manifests go first: what is left by a crash does not count.
    fn prune(&self) -> Result<(), RunsError> {
        let entries = Checkpoints::at(&self.folder).entries()?;
        let finished = entries.iter().filter(|entry| entry.is_finished());
        // What is not finished is what an earlier write could not take back.
        let newest = finished.rev().nth(self.keep - 1);
        let first = newest.map_or(0, |entry| entry.number);
        let old = |entry: &&Entry| entry.number < first || !entry.is_finished();
        for entry in entries.iter().filter(old) {
            edge("checkpoint.before_prune", &entry.path)?;
            let manifest = entry.manifest();
            match fs::remove_file(&manifest) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed.map_err(FsError::io("remove", &manifest))?,
            }
            edge("checkpoint.in_prune", &entry.path)?;
            fs::remove_dir_all(&entry.path).map_err(FsError::io("remove", &entry.path))?;
            edge("checkpoint.after_prune", &entry.path)?;
        }
        Ok(())
    }
}

/// Writes one checkpoint into a new folder.
fn write_all(path: &Path, header: Value, parts: &[(&str, &[u8])]) -> Result<(), FsError> {
    fs::create_dir(path).map_err(FsError::io("write", path))?;
    let mut named = Vec::with_capacity(parts.len());
    for (name, bytes) in parts {
        assert!(is_plain(name), "`{name}` is no name of a part");
        let path = path.join(name);
        edge("checkpoint.before_part", &path)?;
        put(&path, bytes, "checkpoint.before_part_rename")?;
        edge("checkpoint.after_part", &path)?;
        named.push(Part {
            name: (*name).to_owned(),
            bytes: bytes.len() as u64,
            sha256: sha256(bytes),
        });
    }
    let manifest = Manifest {
        format: FORMAT,
        header,
        parts: named,
    };
    let file = path.join(manifest::NAME);
    edge("checkpoint.before_manifest", &file)?;
    put(
        &file,
        manifest.to_text().as_bytes(),
        "checkpoint.before_rename",
    )?;
    edge("checkpoint.after_rename", &file)?;
    sync_folder(path)
}

/// Writes a file that gets its name when its bytes are on the disk. That the name is, too, is seen to
/// by syncing the folder once.
fn put(path: &Path, bytes: &[u8], before_rename: &str) -> Result<(), FsError> {
    let mut file = AtomicFile::create(path)?;
    let written = file.write_all(bytes);
    written.map_err(FsError::io("write", path))?;
    file.sync()?;
    edge(before_rename, path)?;
    file.commit_unsynced()
}

/// One of [`FAILPOINTS`](super::FAILPOINTS).
fn edge(name: &str, path: &Path) -> Result<(), FsError> {
    failpoint::check(name).map_err(FsError::io("write", path))
}
