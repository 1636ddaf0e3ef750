//! The one way into the index: reading what a run's folder has gained, and writing that in one transaction.
//!
//! Files are read outside of the transaction, so that writers wait for each other only while they write. Of two who
//! read the same run at once, one writes; the other sees that the run's revision has grown, and reads again from there.

use crate::points::{Point, ROW, pack, points_in};
use crate::query::{Kind, json_in};
use crate::reading::{self, Change};
use crate::run::{Run, State};
use crate::{Artifact, Index, IndexError};
use lockstep_base::calendar;
use lockstep_place::FileEntry;
use lockstep_runs::document::DocumentError;
use lockstep_runs::{Held, RunDir, files as names};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How often a run is read again because another has written it meanwhile.
const TRIES: usize = 1000;
/// How long a run in a bucket may leave its lock as it is before its owner counts as gone: some times as long as an
/// owner takes to renew it.
const SILENCE: f64 = 60.0;

/// What bringing an index up to date came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// Runs whose folders were read.
    pub read: usize,
    /// Runs whose folders are gone.
    pub gone: usize,
    /// Runs that could not be read, and why.
    pub unreadable: Vec<(String, String)>,
}

/// A run as the index knows it.
struct Known {
    id: i64,
    revision: i64,
    run: Run,
}

/// What a folder looks like from outside.
struct Seen {
    stamp: String,
    /// All its files, where they were listed anyway.
    files: Option<Vec<FileEntry>>,
}

impl Index {
    /// Brings the index up to date with one run.
    ///
    /// # Errors
    /// When the run cannot be read, or the index cannot be written.
    pub fn refresh(&mut self, run: &RunDir) -> Result<(), IndexError> {
        let seen = match run.place().local() {
            Some(path) => Seen {
                stamp: stamp(path),
                files: None,
            },
            None => {
                let files = run.place().list()?;
                Seen {
                    stamp: stamp_of(&files),
                    files: Some(files),
                }
            }
        };
        self.refresh_seen(run, seen)
    }

    fn refresh_seen(&mut self, run: &RunDir, seen: Seen) -> Result<(), IndexError> {
        for _ in 0..TRIES {
            let known = self.known(&run.name)?;
            let before = known.as_ref().map(|known| known.run.clone());
            let mut change = reading::read(run, before, seen.files.clone())?;
            if change.run.job.is_empty() {
                // Not a run, or not one yet: its job is the first thing that is written.
                return Ok(());
            }
            look_for_owner(run, &mut change.run)?;
            let (more, old) = (change.more, known.as_ref().map(|k| (k.id, k.revision)));
            if self.write(old, &seen.stamp, change)? && !more {
                return Ok(());
            }
        }
        let path = self.location.name();
        Err(DocumentError::Contended { path }.into())
    }

    /// Brings the index up to date with the store: runs that are new, that changed, that go on, and that are gone.
    ///
    /// # Errors
    /// When the store cannot be read, or the index cannot be written. A run that cannot be read is told of instead.
    pub fn refresh_all(&mut self) -> Result<Refreshed, IndexError> {
        let seen = self.look()?;
        let mut done = Refreshed::default();
        let known = self.all_known()?;
        let gone: Vec<&String> = known
            .keys()
            .filter(|name| !seen.contains_key(*name))
            .collect();
        if !gone.is_empty() {
            done.gone = gone.len();
            self.forget(&gone)?;
        }
        for (name, seen) in seen {
            let Ok(place) = self.store.join(&name) else {
                continue;
            };
            let run = RunDir::named(&name, place);
            let same = known.get(&name).filter(|(stamp, _)| *stamp == seen.stamp);
            if same.is_some_and(|(_, state)| is_settled(&run, *state)) {
                continue;
            }
            match self.refresh_seen(&run, seen) {
                Ok(()) => done.read += 1,
                Err(error) if error.is_own() => return Err(error),
                // It may have been removed in this moment.
                Err(error) => done.unreadable.push((name, error.to_string())),
            }
        }
        Ok(done)
    }

    /// The folders of the store that may be runs.
    fn look(&self) -> Result<BTreeMap<String, Seen>, IndexError> {
        let mut found = BTreeMap::new();
        if let Some(path) = self.store.local() {
            for name in self.store.beneath().folders()? {
                let folder = path.join(&name);
                // A look at one file is cheaper than finding out later, again and again, that it is not a run.
                if folder.join(names::JOB).exists() {
                    let stamp = stamp(&folder);
                    found.insert(name, Seen { stamp, files: None });
                }
            }
            return Ok(found);
        }
        let mut files: BTreeMap<String, Vec<FileEntry>> = BTreeMap::new();
        for mut file in self.store.list()? {
            if let Some((run, path)) = file.path.clone().split_once('/') {
                path.clone_into(&mut file.path);
                files.entry(run.to_owned()).or_default().push(file);
            }
        }
        for (name, files) in files {
            if files.iter().any(|file| file.path == names::JOB) {
                let seen = Seen {
                    stamp: stamp_of(&files),
                    files: Some(files),
                };
                found.insert(name, seen);
            }
        }
        Ok(found)
    }

    /// Removes a run from the index, whose folder is gone.
    ///
    /// # Errors
    /// When the index cannot be written.
    pub fn forget(&mut self, names: &[impl AsRef<str>]) -> Result<(), IndexError> {
        let failed = self.failed();
        let transaction = self.begin()?;
        for name in names {
            let sql = "SELECT id FROM run WHERE name = ?1";
            let found = transaction.query_row(sql, [name.as_ref()], |row| row.get(0));
            let id: Option<i64> = found.optional().map_err(&failed)?;
            if let Some(id) = id {
                forget(&transaction, id).map_err(&failed)?;
                let removed = transaction.execute("DELETE FROM run WHERE id = ?1", [id]);
                removed.map_err(&failed)?;
            }
        }
        transaction.commit().map_err(&failed)
    }

    fn begin(&mut self) -> Result<Transaction<'_>, IndexError> {
        let failed = self.failed();
        let begun = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate);
        begun.map_err(&failed)
    }

    fn known(&self, name: &str) -> Result<Option<Known>, IndexError> {
        let sql = "SELECT id, revision, facts FROM run WHERE name = ?1";
        let mut found = self.rows(sql, [name], |row| {
            Ok(Known {
                id: row.get(0)?,
                revision: row.get(1)?,
                run: json_in(row, 2)?,
            })
        })?;
        Ok(found.pop())
    }

    /// What each run looked like when it was read, and how it was.
    fn all_known(&self) -> Result<BTreeMap<String, (String, State)>, IndexError> {
        let sql = "SELECT name, stamp, json_extract(facts, '$.state') FROM run";
        let all = self.rows(sql, [], |row| {
            let state: String = row.get(2)?;
            let state = State::ALL.into_iter().find(|known| known.word() == state);
            Ok((row.get(0)?, (row.get(1)?, state.unwrap_or_default())))
        })?;
        Ok(all.into_iter().collect())
    }

    /// Writes a change in one transaction, if the run is still as it was read. Whether it was.
    fn write(
        &mut self,
        before: Option<(i64, i64)>,
        stamp: &str,
        change: Change,
    ) -> Result<bool, IndexError> {
        let io = |source| IndexError::Io {
            path: self.location.name(),
            source,
        };
        lockstep_base::failpoint::check("index.before_write").map_err(io)?;
        let failed = self.failed();
        let transaction = self.begin()?;
        if !write_change(&transaction, before, stamp, &change).map_err(&failed)? {
            return Ok(false);
        }
        lockstep_base::failpoint::reach("index.before_commit");
        transaction.commit().map_err(&failed)?;
        Ok(true)
    }
}

/// Writes a change, if the run is still as it was read. Whether it was.
fn write_change(
    connection: &Connection,
    before: Option<(i64, i64)>,
    stamp: &str,
    change: &Change,
) -> rusqlite::Result<bool> {
    let sql = "SELECT id, revision FROM run WHERE name = ?1";
    let now: Option<(i64, i64)> = connection
        .query_row(sql, [&change.run.name], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    if now != before {
        return Ok(false);
    }
    let facts = serde_json::to_string(&change.run).unwrap_or_default();
    let id = match before {
        Some((id, _)) => {
            let sql =
                "UPDATE run SET revision = revision + 1, stamp = ?2, facts = ?3 WHERE id = ?1";
            connection.execute(sql, params![id, stamp, facts])?;
            id
        }
        None => {
            let sql = "INSERT INTO run (name, revision, stamp, facts) VALUES (?1, 1, ?2, ?3)";
            connection.execute(sql, params![change.run.name, stamp, facts])?;
            connection.last_insert_rowid()
        }
    };
    if change.anew {
        forget(connection, id)?;
    }
    for (column, text) in [("origin", &change.origin), ("result", &change.result)] {
        if let Some(text) = text {
            let sql = format!("UPDATE run SET {column} = ?2 WHERE id = ?1");
            connection.execute(&sql, params![id, text])?;
        }
    }
    if let Some(params) = &change.params {
        write_params(connection, id, params)?;
    }
    if let Some(artifacts) = &change.artifacts {
        write_artifacts(connection, id, artifacts)?;
    }
    if let Some(step) = change.back_to {
        cut_all(connection, id, step)?;
    }
    for ((kind, name), points) in &change.points {
        lockstep_base::failpoint::reach("index.in_write");
        write_points(connection, id, *kind, name, points)?;
    }
    Ok(true)
}

/// Removes all of a run but its row.
fn forget(connection: &Connection, run: i64) -> rusqlite::Result<()> {
    let series = "SELECT id FROM series WHERE run = ?1";
    connection.execute(
        &format!("DELETE FROM points WHERE series IN ({series})"),
        [run],
    )?;
    for table in ["series", "param", "artifact"] {
        connection.execute(&format!("DELETE FROM {table} WHERE run = ?1"), [run])?;
    }
    Ok(())
}

fn write_params(
    connection: &Connection,
    run: i64,
    params: &BTreeMap<String, serde_json::Value>,
) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM param WHERE run = ?1", [run])?;
    let mut key = connection.prepare("INSERT OR IGNORE INTO key (text) VALUES (?1)")?;
    let sql = "INSERT INTO param (run, key, value) SELECT ?1, id, ?3 FROM key WHERE text = ?2";
    let mut param = connection.prepare(sql)?;
    for (name, value) in params {
        key.execute([name])?;
        param.execute(params![run, name, value.to_string()])?;
    }
    Ok(())
}

fn write_artifacts(
    connection: &Connection,
    run: i64,
    artifacts: &[Artifact],
) -> rusqlite::Result<()> {
    let mut known: BTreeMap<String, i64> = BTreeMap::new();
    let mut statement = connection.prepare("SELECT path, size FROM artifact WHERE run = ?1")?;
    let mut rows = statement.query([run])?;
    while let Some(row) = rows.next()? {
        known.insert(row.get(0)?, row.get(1)?);
    }
    let there: BTreeSet<&str> = artifacts.iter().map(|file| file.path.as_str()).collect();
    for path in known.keys().filter(|path| !there.contains(path.as_str())) {
        let sql = "DELETE FROM artifact WHERE run = ?1 AND path = ?2";
        connection.execute(sql, params![run, path])?;
    }
    let sql = "INSERT OR REPLACE INTO artifact (run, path, size) VALUES (?1, ?2, ?3)";
    let mut insert = connection.prepare(sql)?;
    for file in artifacts {
        let size = i64::try_from(file.size).unwrap_or(i64::MAX);
        if known.get(&file.path) != Some(&size) {
            insert.execute(params![run, file.path, size])?;
        }
    }
    Ok(())
}

/// Removes what metrics have of later steps than `step`.
fn cut_all(connection: &Connection, run: i64, step: u64) -> rusqlite::Result<()> {
    let sql = "SELECT id FROM series WHERE run = ?1 AND kind = ?2";
    let mut statement = connection.prepare(sql)?;
    let ids = statement.query_map(params![run, Kind::Metric.number()], |row| row.get(0))?;
    for id in ids.collect::<rusqlite::Result<Vec<i64>>>()? {
        cut(connection, id, step.saturating_add(1))?;
    }
    Ok(())
}

/// The last row of a series: where it begins, and its points.
type Tail = Option<(i64, Vec<Point>)>;

/// Removes points of `step` and later, and returns the row that is last then.
fn cut(connection: &Connection, series: i64, step: u64) -> rusqlite::Result<Tail> {
    let first = i64::try_from(step).unwrap_or(i64::MAX);
    let sql = "DELETE FROM points WHERE series = ?1 AND first >= ?2";
    connection.execute(sql, params![series, first])?;
    let mut tail = tail(connection, series)?;
    if let Some((first, points)) = &mut tail
        && points.last().is_some_and(|last| last.step >= step)
    {
        points.retain(|point| point.step < step);
        let sql = "UPDATE points SET data = ?3 WHERE series = ?1 AND first = ?2";
        connection.execute(sql, params![series, *first, pack(points)])?;
    }
    Ok(tail)
}

fn tail(connection: &Connection, series: i64) -> rusqlite::Result<Tail> {
    let sql = "SELECT first, data FROM points WHERE series = ?1 ORDER BY first DESC LIMIT 1";
    let last = connection.query_row(sql, [series], |row| Ok((row.get(0)?, points_in(row, 1)?)));
    last.optional()
}

/// Adds points to a series.
fn write_points(
    connection: &Connection,
    run: i64,
    kind: Kind,
    name: &str,
    points: &[Point],
) -> rusqlite::Result<()> {
    let Some(first) = points.first() else {
        return Ok(());
    };
    let sql = "INSERT OR IGNORE INTO series (run, kind, name) VALUES (?1, ?2, ?3)";
    connection.execute(sql, params![run, kind.number(), name])?;
    let sql = "SELECT id FROM series WHERE run = ?1 AND kind = ?2 AND name = ?3";
    let series: i64 =
        connection.query_row(sql, params![run, kind.number(), name], |row| row.get(0))?;
    let tail = match kind {
        // Of a step that is told again the last word counts.
        Kind::Metric => cut(connection, series, first.step)?,
        Kind::System => tail(connection, series)?,
    };
    let mut rest = points;
    let mut last_first = i64::MIN;
    if let Some((first, mut stored)) = tail {
        last_first = first;
        let room = ROW.saturating_sub(stored.len()).min(rest.len());
        if room > 0 {
            stored.extend(&rest[..room]);
            rest = &rest[room..];
            let sql = "UPDATE points SET data = ?3 WHERE series = ?1 AND first = ?2";
            connection.execute(sql, params![series, first, pack(&stored)])?;
        }
    }
    for row in rest.chunks(ROW) {
        let Some(point) = row.first() else { continue };
        let order = match kind {
            Kind::Metric => i64::try_from(point.step).unwrap_or(i64::MAX),
            Kind::System => (point.time * 1e3) as i64,
        };
        last_first = order.max(last_first.saturating_add(1));
        let sql = "INSERT INTO points (series, first, data) VALUES (?1, ?2, ?3)";
        connection.execute(sql, params![series, last_first, pack(row)])?;
    }
    Ok(())
}

/// What a run's folder looks like from outside: another text when something in it was made, renamed or removed, or
/// its record has grown.
fn stamp(folder: &Path) -> String {
    let of = |path: &Path| match std::fs::symlink_metadata(path) {
        Ok(found) => format!(
            "{} {}.{:09}",
            found.len(),
            found.mtime(),
            found.mtime_nsec()
        ),
        Err(_) => "-".to_owned(),
    };
    format!("{} / {}", of(folder), of(&folder.join(names::EVENTS)))
}

/// The same of objects: their names and versions, but the lock's, which its owner renews.
fn stamp_of(files: &[FileEntry]) -> String {
    let mut hasher = lockstep_base::fs::Hasher::new();
    for file in files.iter().filter(|file| file.path != names::LOCK) {
        hasher.update(format!("{}\0{}\0{}\n", file.path, file.size, file.version).as_bytes());
    }
    hasher.finish()
}

/// Whether a run whose folder is as it was is still in the same state.
fn is_settled(run: &RunDir, state: State) -> bool {
    match state {
        State::Succeeded | State::Interrupted | State::Failed => true,
        State::Lost => matches!(run.held(), Ok(Held::ByNobody)),
        State::Running => matches!(run.held(), Ok(Held::BySomebody)),
    }
}

/// Says of a run that has no result whether its owner is still there.
fn look_for_owner(run: &RunDir, facts: &mut Run) -> Result<(), IndexError> {
    if !matches!(facts.state, State::Running | State::Lost) {
        facts.progress.lock = None;
        return Ok(());
    }
    facts.state = match run.held()? {
        Held::ByNobody => State::Lost,
        Held::BySomebody => State::Running,
        Held::AsOf(lock) => {
            let now = calendar::now();
            match &facts.progress.lock {
                Some((seen, since)) if *seen == lock => match now - since > SILENCE {
                    true => State::Lost,
                    false => State::Running,
                },
                _ => {
                    facts.progress.lock = Some((lock, now));
                    State::Running
                }
            }
        }
    };
    Ok(())
}
