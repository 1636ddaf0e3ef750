//! Finding the newest whole checkpoint, and reading it.

use super::damage::{Damage, Damaged};
use super::manifest::{self, Manifest, Part};
use super::{CheckpointFolder, Checkpoints, number, step_of};
use crate::{Generation, RunsError};
use lockstep_base::fs::beneath::Purpose;
use lockstep_base::fs::{Hasher, sha256};
use lockstep_place::{Place, PlaceError};
use serde_json::Value;

/// How much of a part is held in memory while it is checked.
const PIECE: u64 = 8 << 20;

/// A checkpoint whose manifest is right.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    place: Place,
    manifest: Manifest,
}

/// The newest whole checkpoint, and what had to be passed over to come to it.
#[derive(Debug)]
pub struct NewestCheckpoint {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// Newer ones that cannot be used, from the newest on, each with the file that makes it unusable.
    pub skipped: Vec<Damaged>,
}

impl Checkpoints {
    /// Finds the newest checkpoint of which every byte is as it was written. `None` when there is none.
    ///
    /// Those that a gang wrote after it had been replaced are taken only where nothing else is left: they
    /// are states of this run too.
    ///
    /// # Errors
    /// [`RunsError::NoWholeCheckpoint`] when there are some but none is whole; or when the folder
    /// cannot be read.
    pub fn newest(&self) -> Result<Option<NewestCheckpoint>, RunsError> {
        let writing = self.writing()?;
        let (mut skipped, mut stale) = (Vec::new(), Vec::new());
        for entry in self.entries()?.into_iter().rev() {
            if !entry.is_finished() {
                continue;
            }
            match Checkpoint::whole(&entry, |generation| {
                writing
                    .as_ref()
                    .is_some_and(|writing| writing.excludes(entry.number, generation))
            }) {
                Ok(Some(checkpoint)) => {
                    return Ok(Some(NewestCheckpoint {
                        checkpoint,
                        skipped,
                    }));
                }
                Ok(None) => stale.push(entry),
                Err(damaged) => skipped.push(damaged),
            }
        }
        for entry in stale {
            match Checkpoint::whole(&entry, |_| false) {
                Ok(Some(checkpoint)) => {
                    return Ok(Some(NewestCheckpoint {
                        checkpoint,
                        skipped,
                    }));
                }
                Ok(None) => {}
                Err(damaged) => skipped.push(damaged),
            }
        }
        match skipped.is_empty() {
            true => Ok(None),
            false => Err(RunsError::NoWholeCheckpoint {
                place: self.folder.to_string(),
                damaged: skipped,
            }),
        }
    }
}

impl Checkpoint {
    /// Opens the checkpoint in the folder `place`. Its parts are looked at when they are read.
    ///
    /// # Errors
    /// When its manifest is missing, damaged, or from a newer version of this program.
    pub fn open(place: &Place) -> Result<Self, Damaged> {
        Ok(Self {
            place: place.clone(),
            manifest: Manifest::read(&manifest::of(place))?,
        })
    }

    /// Its folder.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// What the writer said about the parts.
    pub fn header(&self) -> &Value {
        &self.manifest.header
    }

    /// Its number: the newest has the highest.
    pub(crate) fn number(&self) -> u64 {
        let shown = self.place.to_string();
        let name = shown.rsplit('/').next().unwrap_or_default();
        number(name).unwrap_or(0)
    }

    /// Steps that were done when it was written.
    pub fn step(&self) -> u64 {
        let shown = self.place.to_string();
        let name = shown.rsplit('/').next().unwrap_or_default();
        step_of(name).unwrap_or(0)
    }

    /// The bytes of a part, as they were written; `None` if there is no such part.
    ///
    /// # Errors
    /// When its file is missing, damaged or cannot be read.
    pub fn part(&self, name: &str) -> Result<Option<Vec<u8>>, Damaged> {
        let Some(part) = self.manifest.parts.iter().find(|part| part.name == name) else {
            return Ok(None);
        };
        let file = self.file(part);
        let bytes = file.read().map_err(Damaged::unread(&file))?;
        part.compare(&file, bytes.len() as u64, &sha256(&bytes))?;
        Ok(Some(bytes))
    }

    /// Opens one and checks every byte of it, unless its generation is one to `exclude`.
    fn whole(
        entry: &CheckpointFolder,
        exclude: impl Fn(Option<&Generation>) -> bool,
    ) -> Result<Option<Self>, Damaged> {
        let checkpoint = Self::open(&entry.place)?;
        if exclude(checkpoint.manifest.generation.as_ref()) {
            return Ok(None);
        }
        for part in &checkpoint.manifest.parts {
            let file = checkpoint.file(part);
            let (length, hash) = hash(&file).map_err(Damaged::unread(&file))?;
            part.compare(&file, length, &hash)?;
        }
        Ok(Some(checkpoint))
    }

    fn file(&self, part: &Part) -> Place {
        self.place
            .join(&part.name)
            .expect("a manifest's parts have plain names")
    }
}

/// Length and hash of a file, read in pieces of one version.
fn hash(file: &Place) -> Result<(u64, String), PlaceError> {
    if let (Some(path), Some(opened)) = (file.local(), file.open_local(Purpose::Read)) {
        return opened
            .and_then(lockstep_base::fs::sha256_of)
            .map_err(|source| PlaceError::io("read", path, source));
    }
    let entry = file.entry()?.ok_or_else(|| PlaceError::NotFound {
        place: file.to_string(),
    })?;
    let mut hasher = Hasher::new();
    for start in (0..entry.size).step_by(PIECE as usize) {
        let end = (start + PIECE).min(entry.size);
        hasher.update(&file.read_range_of(&entry, start..end)?);
    }
    Ok((entry.size, hasher.finish()))
}

impl Part {
    fn compare(&self, file: &Place, length: u64, hash: &str) -> Result<(), Damaged> {
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
        Err(Damaged::new(file, damage))
    }
}
