//! Finding the newest whole checkpoint, and reading it.

use super::Checkpoints;
use super::damage::{Damage, Damaged};

use super::manifest::{self, Manifest, Part};
use crate::RunsError;
use lockstep_fs::{sha256, sha256_of_file};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A checkpoint whose manifest is right.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    path: PathBuf,
    manifest: Manifest,
}

/// The newest whole checkpoint, and what had to be passed over to come to it.
#[derive(Debug)]
pub struct Found {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// Newer ones that cannot be used, from the newest on, each with a file that is to blame.
    pub skipped: Vec<Damaged>,
}

impl Checkpoints {
    /// Finds the newest checkpoint of which every byte is as it was written. `None` when there is none.
    ///
    /// # Errors
    /// [`RunsError::NoWholeCheckpoint`] when there are some but none is whole; or when the folder
    /// cannot be read.
    pub fn newest(&self) -> Result<Option<Found>, RunsError> {
        let mut skipped = Vec::new();
        for entry in self.entries()?.into_iter().rev() {
            if !entry.is_finished() {
                continue;
            }
            let whole = Checkpoint::open(&entry.path).and_then(|checkpoint| {
                checkpoint.verify()?;
                Ok(checkpoint)
            });
            match whole {
                Ok(checkpoint) => {
                    return Ok(Some(Found {
                        checkpoint,
                        skipped,
                    }));
                }
                Err(damaged) => skipped.push(damaged),
            }
        }
        match skipped.is_empty() {
            true => Ok(None),
            false => Err(RunsError::NoWholeCheckpoint {
                path: self.folder.clone(),
                damaged: skipped,
            }),
        }
    }
}

impl Checkpoint {
    /// Opens the checkpoint in the folder `path`. Its parts are looked at when they are read.
    ///
    /// # Errors
    /// When its manifest is missing, damaged, or from a newer version of this program.
    pub fn open(path: &Path) -> Result<Self, Damaged> {
        Ok(Self {
            path: path.to_owned(),
            manifest: Manifest::read(&path.join(manifest::NAME))?,
        })
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the writer said about the parts.
    pub fn header(&self) -> &Value {
        &self.manifest.header
    }

    /// The bytes of a part, as they were written; `None` if there is no such part.
    ///
    /// # Errors
    /// When its file is missing, damaged or cannot be read.
    pub fn part(&self, name: &str) -> Result<Option<Vec<u8>>, Damaged> {
        let Some(part) = self.manifest.parts.iter().find(|part| part.name == name) else {
            return Ok(None);
        };
        let path = self.path.join(name);
        let bytes = fs::read(&path).map_err(Damaged::io(&path))?;
        part.compare(&path, bytes.len() as u64, &sha256(&bytes))?;
        Ok(Some(bytes))
    }

    /// Checks every part.
    fn verify(&self) -> Result<(), Damaged> {
        for part in &self.manifest.parts {
            let path = self.path.join(&part.name);
            let (length, hash) = sha256_of_file(&path).map_err(Damaged::io(&path))?;
            part.compare(&path, length, &hash)?;
        }
        Ok(())
    }
}

impl Part {
    fn compare(&self, path: &Path, length: u64, hash: &str) -> Result<(), Damaged> {
        let damage = if length != self.bytes {
            Damage::Length {
                found: length,
                expected: self.bytes,
            }
        } else if hash != self.sha256 {
            Damage::Hash
        } else {
            return Ok(());
        };
        Err(Damaged::new(path, damage))
    }
}
