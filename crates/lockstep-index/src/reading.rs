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
use lockstep_runs::RunDir;
use serde_json::Value;
use std::collections::BTreeMap;

/// The record of events.
const EVENTS: &str = "events.jsonl";
/// How many bytes of the record are read at a time.
const PIECE: u64 = 16 << 20;

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
    let lines = record(run, &files, &mut change)?;
    let mut reader = Reader::new(&mut change);
    for line in lines.split(|byte| *byte == b'\n') {
        reader.line(line);
    }
    small_files(run, &files, &mut change)?;
    change.run.bytes = files.iter().map(|file| file.size).sum();
    let artifacts = files.into_iter().map(|file| Artifact {
        path: file.path,
        size: file.size,
    });
    // The lock is no product of the run.
    change.artifacts = Some(artifacts.filter(|file| file.path != ".lock").collect());
    Ok(change)
}

/// The whole lines of the record that were not read yet, up to a bound.
fn record(run: &RunDir, files: &[FileEntry], change: &mut Change) -> Result<Vec<u8>, IndexError> {
    match run.place().local() {
        Some(_) => local_record(run, files, change),
        None => remote_record(run, files, change),
    }
}

fn local_record(
    run: &RunDir,
    files: &[FileEntry],
    change: &mut Change,
) -> Result<Vec<u8>, IndexError> {
    let file = files.iter().find(|file| file.path == EVENTS);
    let size = file.map_or(0, |file| file.size);
    if size < change.run.progress.offset {
        start_over(change);
    }
    let from = change.run.progress.offset;
    let end = size.min(from + PIECE);
    let mut lines = run.file(EVENTS).read_range(from..end)?;
    // A line that is being written is read the next time. One longer than a piece is none of ours.
    let whole = match lines.iter().rposition(|byte| *byte == b'\n') {
        Some(last) => last + 1,
        None if end - from == PIECE => lines.len(),
        None => 0,
    };
    lines.truncate(whole);
    change.run.progress.offset += whole as u64;
    change.more = end < size;
    Ok(lines)
}

/// In a bucket the record is objects one after the other, whose names sort by age.
fn remote_record(
    run: &RunDir,
    files: &[FileEntry],
    change: &mut Change,
) -> Result<Vec<u8>, IndexError> {
    let mut names: Vec<&FileEntry> = files
        .iter()
        .filter(|file| file.path.starts_with(EVENTS))
        .collect();
    names.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let gone = |object: &str| !names.iter().any(|file| file.path == object);
    if !change.run.progress.object.is_empty() && gone(&change.run.progress.object) {
        start_over(change);
    }
    let mut lines = Vec::new();
    for file in names {
        if file.path <= change.run.progress.object {
            continue;
        }
        if lines.len() as u64 > PIECE {
            change.more = true;
            break;
        }
        lines.extend(run.file(&file.path).read()?);
        lines.push(b'\n');
        change.run.progress.object.clone_from(&file.path);
    }
    Ok(lines)
}

fn start_over(change: &mut Change) {
    change.anew = true;
    change.run = Run {
        name: std::mem::take(&mut change.run.name),
        ..Run::default()
    };
}

/// Reads the files that are small and written whole, each if it has another version than the last time.
fn small_files(run: &RunDir, files: &[FileEntry], change: &mut Change) -> Result<(), IndexError> {
    if let Some(found) = changed(run, files, change, "job.toml")? {
        let text = String::from_utf8_lossy(found.as_deref().unwrap_or_default());
        let params = job::params(&text);
        if let Some(Value::String(name)) = params.get("name") {
            change.run.job.clone_from(name);
        }
        change.params = Some(params);
    }
    if let Some(found) = changed(run, files, change, "origin.json")? {
        let text = found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        events::origin(&mut change.run, text.as_deref());
        change.origin = Some(text);
    }
    if let Some(found) = changed(run, files, change, "result.json")? {
        change.result = Some(found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
    }
    if changed(run, files, change, tags::FILE)?.is_some() {
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
    match run.file(name).read() {
        Ok(bytes) => {
            versions.insert(name.to_owned(), version);
            Ok(Some(Some(bytes)))
        }
        Err(PlaceError::NotFound { .. }) => Ok(versions.remove(name).map(|_| None)),
        Err(error) => Err(error.into()),
    }
}
