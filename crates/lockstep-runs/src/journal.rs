//! Files that grow while a run goes on: events, logs and metrics. This is the one writer of them.
//!
//! On this machine a line is in its file when it was added. A bucket cannot add to an object, and may be
//! slow or away for a while, and nobody must wait for that. So there a thread of its own writes: lines of a
//! *table*, such as the metrics, by writing the whole object again, which is small; lines of a *log*
//! in objects one after the other, `NAME.TIME-NUMBER`, whose names sort by age. What the bucket does not
//! take is kept and tried again, up to a bound, and the end waits for all of it.

use crate::files::{EVENTS, is_part_of};
use crate::name::timestamp;
use crate::{RunDir, RunsError};
use lockstep_base::calendar;
use lockstep_base::fs::FsError;
use lockstep_base::fs::beneath::Purpose;
use lockstep_events::Recorded;
use lockstep_place::{Place, PlaceError};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a line may wait before it is sent.
const INTERVAL: Duration = Duration::from_secs(5);
/// From how many bytes on a log is sent at once.
const FULL: usize = 256 << 10;
/// How much of a log is kept while the bucket does not take it.
const MOST: usize = 4 << 20;

/// The growing files of a run.
#[derive(Debug)]
pub struct Journal(JournalKind);

#[derive(Debug)]
enum JournalKind {
    Local(RunDir, BTreeMap<String, File>),
    Remote(Sender),
}

impl Journal {
    /// Begins to add to the files of `run`. What is in them is kept.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn open(run: &RunDir) -> Result<Journal, RunsError> {
        Ok(Journal(match run.place().local() {
            Some(_) => JournalKind::Local(run.clone(), BTreeMap::new()),
            None => JournalKind::Remote(Sender::start(run.clone())?),
        }))
    }

    /// Makes the log `name` if there is none. In a bucket it comes with its first line.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn open_log(&mut self, name: &str) -> Result<(), RunsError> {
        match &mut self.0 {
            JournalKind::Local(run, files) => append(run, files, name, ""),
            JournalKind::Remote(_) => Ok(()),
        }
    }

    /// Adds a line to the log `name`, which is made if need be.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn log(&mut self, name: &str, line: &str) -> Result<(), RunsError> {
        match &mut self.0 {
            JournalKind::Local(run, files) => append(run, files, name, &format!("{line}\n")),
            JournalKind::Remote(sender) => {
                sender.state().log(name, line);
                sender.shared.changed.notify_one();
                Ok(())
            }
        }
    }

    /// Adds events to the run's record, all of them or, when this process is killed meanwhile, some. On this machine
    /// they are in the file when this returns.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn events(&mut self, events: &[Recorded]) -> Result<(), RunsError> {
        let lines: Vec<String> = events.iter().map(as_json).collect();
        match lines.is_empty() {
            true => Ok(()),
            false => self.log(EVENTS, &lines.join("\n")),
        }
    }

    /// Adds a line to the table `name`.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn row(&mut self, name: &str, line: &str) -> Result<(), RunsError> {
        match &mut self.0 {
            JournalKind::Local(run, files) => append(run, files, name, &format!("{line}\n")),
            JournalKind::Remote(sender) => {
                let mut state = sender.state();
                let table = state.tables.entry(name.to_owned()).or_default();
                *table += line;
                table.push('\n');
                state.dirty.insert(name.to_owned());
                sender.shared.changed.notify_one();
                Ok(())
            }
        }
    }

    /// The content of the table `name`, what was not sent yet included.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn table(&self, name: &str) -> Result<String, RunsError> {
        match &self.0 {
            JournalKind::Local(run, _) => read_text(&run.file(name)),
            JournalKind::Remote(sender) => {
                let state = sender.state();
                Ok(state.tables.get(name).cloned().unwrap_or_default())
            }
        }
    }

    /// Makes `text` the content of the table `name`.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn restore(&mut self, name: &str, text: &str) -> Result<(), RunsError> {
        match &mut self.0 {
            JournalKind::Local(run, files) => {
                files.remove(name);
                let file = run.file(name);
                match file.read() {
                    Ok(found) if found == text.as_bytes() => Ok(()),
                    Err(PlaceError::NotFound { .. }) if text.is_empty() => Ok(()),
                    _ => Ok(file.write(text.as_bytes())?),
                }
            }
            JournalKind::Remote(sender) => {
                let mut state = sender.state();
                state.tables.insert(name.to_owned(), text.to_owned());
                state.dirty.insert(name.to_owned());
                sender.shared.changed.notify_one();
                Ok(())
            }
        }
    }

    /// Waits until everything is where it belongs. Nothing is added after it.
    ///
    /// # Errors
    /// When the bucket did not take something.
    pub fn finish(&mut self) -> Result<(), RunsError> {
        match &mut self.0 {
            JournalKind::Local(..) => Ok(()),
            JournalKind::Remote(sender) => sender.finish(),
        }
    }
}

impl RunDir {
    /// The whole log `name`, as it was written so far. In a bucket it is in objects one after the other.
    ///
    /// # Errors
    /// When the store cannot be read. A log that is not there is empty.
    pub fn read_log(&self, name: &str) -> Result<String, RunsError> {
        if self.place().local().is_some() {
            return read_text(&self.file(name));
        }
        let mut text = String::new();
        for entry in self.place().list()? {
            if is_part_of(&entry.path, name) {
                text += &read_text(&self.file(&entry.path))?;
            }
        }
        Ok(text)
    }
}

/// A value as a line of a journal.
pub fn as_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain structs of numbers and strings have a JSON form")
}

/// The text of a file; none if it is not there.
fn read_text(file: &Place) -> Result<String, RunsError> {
    match file.read() {
        Ok(found) => Ok(String::from_utf8_lossy(&found).into_owned()),
        Err(PlaceError::NotFound { .. }) => Ok(String::new()),
        Err(error) => Err(error.into()),
    }
}

fn append(
    run: &RunDir,
    files: &mut BTreeMap<String, File>,
    name: &str,
    text: &str,
) -> Result<(), RunsError> {
    let place = run.file(name);
    let path = place.local().unwrap_or(Path::new(name));
    if !files.contains_key(name) {
        let file = open_to_append(&place).map_err(FsError::io("write", path))?;
        files.insert(name.to_owned(), file);
    }
    let written = match files.get_mut(name) {
        Some(file) => file.write_all(text.as_bytes()),
        None => Ok(()),
    };
    Ok(written.map_err(FsError::io("write", path))?)
}

/// Opens a file to add lines to it. Whoever was killed in the middle of a line left it without an end: it must not
/// swallow the next one.
fn open_to_append(place: &Place) -> io::Result<File> {
    let opened = place.open_local(Purpose::Append);
    let mut file = opened.unwrap_or(Err(io::ErrorKind::Unsupported.into()))?;
    if file.metadata()?.len() > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != [b'\n'] {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}

/// The thread that writes to a bucket.
#[derive(Debug)]
struct Sender {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Option<RunsError>>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    tables: BTreeMap<String, String>,
    /// Tables whose object is not as they are.
    dirty: BTreeSet<String>,
    /// What of each log was not sent yet.
    logs: BTreeMap<String, String>,
    /// Lines that found no room.
    lost: u64,
    ended: bool,
}

impl State {
    fn log(&mut self, name: &str, line: &str) {
        let log = self.logs.entry(name.to_owned()).or_default();
        if log.len() + line.len() > MOST {
            self.lost += 1;
            return;
        }
        if self.lost > 0 {
            *log += &format!(
                "({} lines were lost here: the store did not take them)\n",
                self.lost
            );
            self.lost = 0;
        }
        *log += line;
        log.push('\n');
    }

    /// Whether something is to be sent before the interval is over.
    fn is_urgent(&self) -> bool {
        self.ended || !self.dirty.is_empty() || self.logs.values().any(|log| log.len() >= FULL)
    }
}

impl Sender {
    fn start(run: RunDir) -> Result<Sender, RunsError> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let (sending, name) = (shared.clone(), run.name.clone());
        let thread = thread::Builder::new()
            .name("journal".into())
            .spawn(move || send_all(&run, &sending))
            .map_err(FsError::io("write", name.as_ref()))?;
        Ok(Sender {
            shared,
            thread: Some(thread),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.lock()
    }

    fn finish(&mut self) -> Result<(), RunsError> {
        self.state().ended = true;
        self.shared.changed.notify_one();
        let failed = self.thread.take().and_then(|thread| thread.join().ok());
        failed.flatten().map_or(Ok(()), Err)
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        // Whoever wants to know what became of it has asked.
        let _ = self.finish();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is something to send: in time, or because it is urgent. Returns what it is, and
    /// whether it is the last.
    fn next(&self, sent: Instant) -> (Vec<(String, String)>, BTreeMap<String, String>, bool) {
        let mut state = self.lock();
        loop {
            let left = INTERVAL.saturating_sub(sent.elapsed());
            if state.is_urgent() || (left.is_zero() && !state.logs.is_empty()) {
                break;
            }
            let wait = if left.is_zero() { INTERVAL } else { left };
            let waited = self.changed.wait_timeout(state, wait);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let dirty = std::mem::take(&mut state.dirty);
        let tables = dirty.into_iter().map(|name| {
            let text = state.tables.get(&name).cloned().unwrap_or_default();
            (name, text)
        });
        let tables = tables.collect();
        (tables, std::mem::take(&mut state.logs), state.ended)
    }

    /// Takes back what could not be sent.
    fn put_back(&self, tables: Vec<String>, logs: BTreeMap<String, String>) {
        let mut state = self.lock();
        state.dirty.extend(tables);
        for (name, mut text) in logs {
            text += &state.logs.remove(&name).unwrap_or_default();
            state.logs.insert(name, text);
        }
    }
}

/// Sends what there is until the end, and returns what went wrong last if it was never put right.
fn send_all(run: &RunDir, shared: &Shared) -> Option<RunsError> {
    let began = timestamp(calendar::now() as i64);
    let mut number = 0;
    let mut sent = Instant::now();
    loop {
        let (tables, logs, last) = shared.next(sent);
        let mut failed = None;
        let (mut tables_left, mut logs_left) = (Vec::new(), BTreeMap::new());
        for (name, text) in tables {
            if let Err(error) = run.file(&name).write(text.as_bytes()) {
                failed = Some(error);
                tables_left.push(name);
            }
        }
        for (name, text) in logs {
            number += 1;
            let object: Place = run.file(&format!("{name}.{began}-{number:06}"));
            if let Err(error) = object.write(text.as_bytes()) {
                failed = Some(error);
                logs_left.insert(name, text);
            }
        }
        if last {
            return failed.map(Into::into);
        }
        if failed.is_some() {
            shared.put_back(tables_left, logs_left);
            // The bucket was asked as often as `storage.retries` says: now it is left alone for a while.
            thread::sleep(INTERVAL.min(Duration::from_secs(1)));
        }
        sent = Instant::now();
    }
}
