//! What the files of a run say.
//!
//! The record of events is read from where the last reading ended, so a long run is not read again and again. A run that
//! went back to a checkpoint tells some steps twice: of each step the last word counts.

mod events;
mod job;

use crate::IndexError;
use crate::query::Kind;
use crate::run::Run;
use crate::{Artifact, Point, tags};
use events::Reader;
use lockstep_place::{FileEntry, PlaceError};
use lockstep_runs::{RunDir, files as names};
use serde_json::Value;
use std::collections::BTreeMap;

/// The largest of the small files of a run, in bytes: one that is larger is none of ours, and must not fill the memory.
const LARGEST: u64 = 4 << 20;

/// What is new of a run.
#[derive(Debug, Default)]
pub(crate) struct Change {
    /// What is known at a glance, as it is now.
    pub(crate) run: Run,
    /// What was indexed before must go: the record is another.
    pub(crate) anew: bool,
    /// Points of later steps must go: the run went back to this one.
    pub(crate) back_to: Option<u64>,
    /// New points.
    pub(crate) points: BTreeMap<(Kind, String), Vec<Point>>,
    /// Those that were read again, or none if they are as they were.
    pub(crate) params: Option<BTreeMap<String, Value>>,
    pub(crate) artifacts: Option<Vec<Artifact>>,
    pub(crate) origin: Option<Option<String>>,
    pub(crate) result: Option<Option<String>>,
    /// More of the record is there.
    pub(crate) more: bool,
}

/// Reads what is new of a run since `known`. `files` are all of the run, if somebody has listed them.
pub(crate) fn read(
    run: &RunDir,
    known: Option<Run>,
    files: Option<Vec<FileEntry>>,
) -> Result<Change, IndexError> {
    let files = match files {
        Some(files) => files,
        None => run.place().list()?,
    };
    let mut change = Change {
        run: known.unwrap_or_default(),
        ..Change::default()
    };
    change.run.name.clone_from(&run.name);
    let piece = run.read_events_among(&files, &change.run.progress.position)?;
    if piece.anew {
        start_over(&mut change);
    }
    let mut reader = Reader::new(&mut change);
    piece.events().for_each(|event| reader.event(event));
    change.more = piece.more;
    change.run.progress.position = piece.next;
    small_files(run, &files, &mut change)?;
    change.run.bytes = files.iter().map(|file| file.size).sum();
    let artifacts = files.into_iter().map(|file| Artifact {
        path: file.path,
        size: file.size,
    });
    // The lock is no product of the run.
    change.artifacts = Some(
        artifacts
            .filter(|file| ![names::LOCK, names::HOLD].contains(&file.path.as_str()))
            .collect(),
    );
    Ok(change)
}

/// Forgets what was read: the record is another.
fn start_over(change: &mut Change) {
    change.anew = true;
    change.run = Run {
        name: std::mem::take(&mut change.run.name),
        ..Run::default()
    };
}

/// Reads the files that are small and written whole, each if it has another version than the last time.
fn small_files(run: &RunDir, files: &[FileEntry], change: &mut Change) -> Result<(), IndexError> {
    if let Some(found) = changed(run, files, change, names::JOB)? {
        let text = String::from_utf8_lossy(found.as_deref().unwrap_or_default());
        let params = job::params(&text);
        if let Some(Value::String(name)) = params.get("name") {
            change.run.job.clone_from(name);
        }
        change.params = Some(params);
    }
    if let Some(found) = changed(run, files, change, names::ORIGIN)? {
        let text = found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        events::origin(&mut change.run, text.as_deref());
        change.origin = Some(text);
    }
    if let Some(found) = changed(run, files, change, names::MLFLOW_RUN)? {
        change.run.run_name = events::run_name(found.as_deref().unwrap_or_default());
    }
    if let Some(found) = changed(run, files, change, names::RESULT)? {
        change.result = Some(found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
    }
    if changed(run, files, change, names::TAGS)?.is_some() {
        // What is none of ours is no reason to lose the run from sight.
        let said = tags::read(run).unwrap_or_default();
        change.run.tags = said.tags;
        change.run.note = said.note;
    }
    Ok(())
}

/// The content of a file whose version is another than the last time: of one that is gone, nothing.
#[allow(
    clippy::option_option,
    reason = "unchanged, gone, and there are three things"
)]
fn changed(
    run: &RunDir,
    files: &[FileEntry],
    change: &mut Change,
    name: &str,
) -> Result<Option<Option<Vec<u8>>>, IndexError> {
    let versions = &mut change.run.progress.versions;
    let Some(file) = files.iter().find(|file| file.path == name) else {
        return Ok(versions.remove(name).map(|_| None));
    };
    let version = format!("{} {} {}", file.size, file.version, file.inode);
    if versions.get(name) == Some(&version) {
        return Ok(None);
    }
    match run.file(name).read_at_most(LARGEST) {
        Ok(bytes) => {
            versions.insert(name.to_owned(), version);
            Ok(Some(Some(bytes)))
        }
        Err(PlaceError::NotFound { .. }) => Ok(versions.remove(name).map(|_| None)),
        // What MLflow's clients log is theirs, however much it is.
        Err(_) if name == names::MLFLOW_RUN => Ok(None),
        Err(error) => Err(error.into()),
    }
}
