//! Writing checkpoints, and removing old ones.

use super::manifest::{self, FORMAT, Manifest, Part, is_plain};
use super::{CheckpointFolder, Checkpoints};
use crate::{Generation, RunsError};
use lockstep_base::failpoint;
use lockstep_base::fs::{FsError, sha256};
use lockstep_place::{Place, PlaceError};
use serde_json::Value;

/// Writes the checkpoints of a run, for one generation of its gang.
#[derive(Debug)]
pub struct CheckpointWriter {
    checkpoints: Checkpoints,
    generation: Generation,
    keep: usize,
    /// The number of the next one.
    next: u64,
    /// Whether the names of the folders above are known to be on the disk.
    settled: bool,
    /// Whether the run has a job, and so has one as long as it is there.
    has_job: bool,
}

impl Checkpoints {
    /// Prepares for writing: makes the folder, and removes what a writer before left half done or wrote
    /// after it had been replaced. The newest `keep` will stay; at least one does.
    ///
    /// # Errors
    /// [`RunsError::Stale`] when `generation` was replaced already; or when the folder cannot be made,
    /// read or cleaned.
    pub fn writer(
        &self,
        keep: usize,
        generation: Generation,
    ) -> Result<CheckpointWriter, RunsError> {
        self.run.check(&generation)?;
        self.folder.make_folder()?;
        let entries = self.entries()?;
        for entry in &entries {
            if !entry.is_finished() || self.is_stale(entry)? {
                remove(entry)?;
            }
        }
        Ok(CheckpointWriter {
            checkpoints: self.clone(),
            generation,
            keep: keep.max(1),
            next: entries.last().map_or(1, |newest| newest.number + 1),
            settled: false,
            has_job: self.run.check_there().is_ok(),
        })
    }

    /// Whether a checkpoint was written by one that had been replaced. One that cannot be read is not: it
    /// is kept as evidence until its turn comes.
    fn is_stale(&self, entry: &CheckpointFolder) -> Result<bool, RunsError> {
        let Some(writing) = self.writing()? else {
            return Ok(false);
        };
        Ok(Manifest::read(&entry.manifest())
            .is_ok_and(|found| writing.excludes(entry.number, found.generation.as_ref())))
    }
}

impl CheckpointWriter {
    /// Writes a checkpoint of these parts and removes those that are too old. Returns its folder, which
    /// outlives a power cut, its name included, when this returns.
    ///
    /// # Errors
    /// [`RunsError::Stale`] when another generation has begun, and [`RunsError::Gone`] when the run was removed. When the
    /// disk or the store refuses: what was there before is still there, and nothing of this one is, unless that is
    /// refused too; then the next writer removes it.
    ///
    /// # Panics
    /// When the label or a part's name is not a plain file name.
    pub fn write(
        &mut self,
        label: &str,
        header: Value,
        parts: &[(&str, &[u8])],
    ) -> Result<Place, RunsError> {
        assert!(is_plain(label), "`{label}` cannot be a label");
        self.check()?;
        let folder = self.checkpoints.folder.clone();
        let place = folder.join(&self.name(label))?;
        self.next += 1;
        if !place.make_new_folder()? {
            // Its files are another's.
            let taken = std::io::ErrorKind::AlreadyExists.into();
            return Err(FsError::io("write", place.to_string().as_ref())(taken).into());
        }
        if let Err(error) = self.write_all(&place, header, parts) {
            // It would take the room that the next one may need. The first error is the one to report.
            let _ = place.delete_all();
            return Err(error);
        }
        // The name of the new folder lies in the one that holds it.
        folder.sync()?;
        if !self.settled {
            self.checkpoints.run.place().sync()?;
            self.checkpoints.run.sync_name()?;
            self.settled = true;
        }
        edge("checkpoint.after_manifest", &place)?;
        self.prune()?;
        Ok(place)
    }

    /// Checks that the run is there, and that nobody else writes it.
    fn check(&self) -> Result<(), RunsError> {
        let run = &self.checkpoints.run;
        if self.has_job {
            run.check_there()?;
        }
        run.check(&self.generation)
    }

    /// The name of the next one. In a bucket, where no folder can be made exclusively, no other generation
    /// uses the same.
    fn name(&self, label: &str) -> String {
        let name = format!("{:06}-{label}", self.next);
        match self.checkpoints.folder.local() {
            Some(_) => name,
            None => format!("{name}-{}", self.generation),
        }
    }

    /// Writes the files of one checkpoint.
    fn write_all(
        &self,
        place: &Place,
        header: Value,
        parts: &[(&str, &[u8])],
    ) -> Result<(), RunsError> {
        let mut named = Vec::with_capacity(parts.len());
        for (name, bytes) in parts {
            assert!(is_plain(name), "`{name}` cannot be the name of a part");
            let file = place.join(name)?;
            edge("checkpoint.before_part", &file)?;
            let mut writer = file.writer()?;
            writer.write_all(bytes)?;
            edge("checkpoint.before_part_rename", &file)?;
            writer.commit_before_sync()?;
            edge("checkpoint.after_part", &file)?;
            named.push(Part {
                name: (*name).to_owned(),
                bytes: bytes.len() as u64,
                sha256: sha256(bytes),
            });
        }
        // The parts' names are on the disk before the manifest's may be.
        place.sync()?;
        let manifest = Manifest {
            format: FORMAT,
            header,
            parts: named,
            generation: Some(self.generation.clone()),
        };
        let file = manifest::of(place);
        edge("checkpoint.before_manifest", &file)?;
        // What was replaced while it wrote the parts ends here, or writes what does not count.
        self.check()?;
        edge("checkpoint.before_rename", &file)?;
        if file.create_new(manifest.to_text().as_bytes())?.is_none() {
            let taken = std::io::ErrorKind::AlreadyExists.into();
            return Err(FsError::io("write", file.to_string().as_ref())(taken).into());
        }
        edge("checkpoint.after_rename", &file)
    }

    /// Removes all but the newest, and what was replaced.
    fn prune(&self) -> Result<(), RunsError> {
        // One that was replaced meanwhile takes nothing away from the others.
        self.checkpoints.run.check(&self.generation)?;
        let entries = self.checkpoints.entries()?;
        let finished: Vec<bool> = entries.iter().map(CheckpointFolder::is_finished).collect();
        let counted = entries.iter().zip(&finished).rev();
        let newest = counted
            .filter(|(_, finished)| **finished)
            .nth(self.keep - 1);
        let first = newest.map_or(0, |(entry, _)| entry.number);
        for (entry, finished) in entries.iter().zip(finished) {
            // What is not finished is what an earlier write could not take back.
            if entry.number < first || !finished {
                remove(entry)?;
            }
        }
        Ok(())
    }
}

/// Removes a checkpoint. Its manifest goes first: what is left by a crash does not count.
fn remove(entry: &CheckpointFolder) -> Result<(), RunsError> {
    edge("checkpoint.before_prune", &entry.place)?;
    entry.manifest().delete()?;
    // Else a power cut could bring the manifest back without what it names.
    match entry.place.sync() {
        // A folder that is gone, which another removed, has no names to sync.
        Err(PlaceError::Write(FsError::Io { source, .. }))
            if source.kind() == std::io::ErrorKind::NotFound => {}
        synced => synced?,
    }
    edge("checkpoint.in_prune", &entry.place)?;
    entry.place.delete_all()?;
    edge("checkpoint.after_prune", &entry.place)
}

/// One of [`FAILPOINTS`](super::FAILPOINTS).
fn edge(name: &str, place: &Place) -> Result<(), RunsError> {
    let reached = failpoint::check(name);
    Ok(reached.map_err(FsError::io("write", place.to_string().as_ref()))?)
}
