//! Answers what a script asks for: a socket of this machine, one JSON object a line and one in return.
//!
//! The other side is the Python package. Each connection has a thread, since a report may wait for other ranks while
//! another thread of the script wants its next batch.

mod batches;
mod layout;
mod report;
mod shard;
mod slots;

pub(crate) use shard::Shards;

use crate::ScriptError;
use crate::checkpoints::{Resumed, Store};
use crate::environment::{Placing, WorkerAddress};
use crate::part::ScriptPart;
use lockstep_learner::{Gang, Reporter, ShareError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::Duration;

/// The version of what is spoken.
const VERSION: u64 = 1;
/// The longest request. What is larger is no request.
const LONGEST: u64 = 64 << 20;
/// The most that a script may report or share at once: it travels in one message to the coordinator and on to all.
const MOST_SHARED: usize = 512 << 10;

/// What the worker of a script does for it in one generation.
pub(crate) struct Service<'g> {
    pub(crate) gang: &'g Gang<'g>,
    pub(crate) part: &'g ScriptPart,
    pub(crate) placing: Placing,
    pub(crate) all: Vec<WorkerAddress>,
    pub(crate) resumed: Option<Resumed>,
    /// A folder of this generation alone.
    pub(crate) scratch: PathBuf,
    pub(crate) store: Mutex<Store>,
    pub(crate) reporter: Mutex<&'g mut Reporter>,
    pub(crate) shards: Mutex<Shards>,
    /// Reports of this rank, those before this generation included.
    pub(crate) reports: AtomicU64,
    /// The script has asked for something.
    pub(crate) is_used: AtomicBool,
    /// The script has ended.
    pub(crate) is_over: AtomicBool,
    /// The connections, to be closed at the end.
    pub(crate) connections: Mutex<HashMap<u64, UnixStream>>,
}

/// What a script asks for.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Request {
    Hello {
        version: u64,
    },
    Report {
        #[serde(default)]
        metrics: Map<String, Value>,
        checkpoint: Option<PathBuf>,
        timeout_s: Option<f64>,
    },
    Share {
        name: String,
        #[serde(default)]
        value: Value,
        timeout_s: Option<f64>,
    },
    Shard(shard::ShardRequest),
    Next {
        iterator: u64,
        #[serde(default)]
        free: Vec<usize>,
    },
    Close {
        iterator: u64,
    },
}

/// Why a request is not fulfilled.
#[derive(Debug)]
pub(super) struct Refusal {
    words: String,
    kind: &'static str,
    missing: Vec<usize>,
}

impl Refusal {
    fn new(words: impl Into<String>) -> Self {
        Self {
            words: words.into(),
            kind: "refused",
            missing: Vec::new(),
        }
    }
}

impl From<ScriptError> for Refusal {
    fn from(error: ScriptError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<ShareError> for Refusal {
    fn from(error: ShareError) -> Self {
        let words = error.to_string();
        let (kind, missing) = match error {
            ShareError::Missing { missing, .. } => ("timeout", missing),
            _ => ("gone", Vec::new()),
        };
        Self {
            words,
            kind,
            missing,
        }
    }
}

impl<'g> Service<'g> {
    /// Accepts connections until it is [closed](Self::close).
    pub(crate) fn listen<'s>(&'s self, scope: &'s Scope<'s, '_>, listener: UnixListener) {
        scope.spawn(move || {
            for (number, connection) in (0..).zip(listener.incoming()) {
                let mut connections = lock(&self.connections);
                if self.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(connection) = connection else {
                    continue;
                };
                if let Ok(kept) = connection.try_clone() {
                    connections.insert(number, kept);
                    drop(connections);
                    scope.spawn(move || {
                        self.serve(connection);
                        lock(&self.connections).remove(&number);
                    });
                }
            }
        });
    }

    /// Closes all connections, so that the threads that serve them end.
    pub(crate) fn close(&self, socket: &Path) {
        let mut connections = lock(&self.connections);
        self.is_over.store(true, Ordering::Relaxed);
        for (_, connection) in connections.drain() {
            let _ = connection.shutdown(std::net::Shutdown::Both);
        }
        drop(connections);
        lock(&self.shards).close_all();
        // Whoever waits for the next connection sees that there is none to come.
        let _ = UnixStream::connect(socket);
    }

    fn serve(&self, connection: UnixStream) {
        let Ok(mut answers) = connection.try_clone() else {
            return;
        };
        let mut requests = BufReader::new(connection);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = std::io::Read::take(&mut requests, LONGEST).read_until(b'\n', &mut line);
            if !matches!(read, Ok(1..)) {
                return;
            }
            lockstep_base::progress::advance();
            self.is_used.store(true, Ordering::Relaxed);
            let answer = match serde_json::from_slice(&line) {
                Ok(request) => self.answer(request),
                Err(error) => Err(Refusal::new(format!(
                    "cannot understand the request: {error}"
                ))),
            };
            let answer = match answer {
                Ok(value) => json!({ "ok": value }),
                Err(refusal) => json!({
                    "error": refusal.words,
                    "kind": refusal.kind,
                    "missing": refusal.missing,
                }),
            };
            if answers.write_all(format!("{answer}\n").as_bytes()).is_err() {
                return;
            }
        }
    }

    fn answer(&self, request: Request) -> Result<Value, Refusal> {
        match request {
            Request::Hello { version: VERSION } => self.hello(),
            Request::Hello { version } => Err(Refusal::new(format!(
                "the Python package speaks version {version}, and this worker {VERSION}"
            ))),
            Request::Report {
                metrics,
                checkpoint,
                timeout_s,
            } => {
                fits("metrics", &metrics)?;
                self.report(metrics, checkpoint.as_deref(), self.patience(timeout_s))
            }
            Request::Share {
                name,
                value,
                timeout_s,
            } => {
                fits("what is shared", &value)?;
                let name = format!("script-{name}");
                let patience = self.patience(timeout_s);
                let values = self.share(&name, value, None, patience)?;
                Ok(json!({ "values": values }))
            }
            Request::Shard(asked) => Ok(lock(&self.shards).open(&asked, self)?),
            Request::Next { iterator, free } => {
                let iterator = lock(&self.shards).iterator(iterator)?;
                let next = iterator.next(&free)?;
                Ok(next)
            }
            Request::Close { iterator } => {
                lock(&self.shards).close(iterator);
                Ok(json!({}))
            }
        }
    }

    /// Meets other ranks, for as long as the script is there: one that was ended in mid-report waits for nobody, and
    /// the others may have been ended too.
    fn share(
        &self,
        name: &str,
        value: Value,
        among: Option<&[usize]>,
        patience: Duration,
    ) -> Result<Vec<Value>, ShareError> {
        let is_there = || !self.is_over.load(Ordering::Relaxed);
        self.gang
            .share_while(name, value, among, patience, &is_there)
    }

    fn patience(&self, timeout_s: Option<f64>) -> Duration {
        let seconds = timeout_s.unwrap_or(self.part.settings.report_timeout_s);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
    }

    fn hello(&self) -> Result<Value, Refusal> {
        let mut checkpoint = Value::Null;
        let mut metrics = Value::Null;
        if let Some(resumed) = &self.resumed {
            let folder = self.scratch.join("checkpoint");
            if !folder.is_dir() {
                let partial = self.scratch.join("checkpoint.partial");
                resumed.unpack(&partial)?;
                std::fs::rename(&partial, &folder)
                    .map_err(ScriptError::system("write a checkpoint for the script"))?;
            }
            checkpoint = json!(folder);
            metrics = json!(resumed.header.metrics);
        }
        let mut datasets = Map::new();
        for name in self.part.sets.names() {
            let described = shard::describe(&self.part.sets, name, self.part.settings.seed)?;
            datasets.insert(name.to_owned(), described);
        }
        let placing = &self.placing;
        let assignment = self.gang.assignment();
        Ok(json!({
            "rank": placing.rank,
            "world_size": placing.workers,
            "local_rank": placing.local_rank,
            "local_world_size": placing.local_workers,
            "node_rank": placing.node_rank,
            "experiment": self.part.settings.job,
            "run": self.part.run,
            "run_dir": assignment.run_dir,
            "generation": assignment.generation,
            "restarts": assignment.generation - 1,
            "seed": self.part.settings.seed,
            "batch": self.part.settings.batch,
            "timeout_s": self.part.settings.report_timeout_s,
            "checkpoint": checkpoint,
            "checkpoint_metrics": metrics,
            "datasets": datasets,
        }))
    }
}

/// Refuses what would not go through the coordinator.
fn fits(what: &str, value: &impl Serialize) -> Result<(), Refusal> {
    let bytes = serde_json::to_vec(value).map_or(usize::MAX, |text| text.len());
    match bytes <= MOST_SHARED {
        true => Ok(()),
        false => Err(Refusal::new(format!(
            "{what} takes {bytes} bytes, and at most {MOST_SHARED} go through the coordinator; put it into a file of a \
             checkpoint, or on shared storage"
        ))),
    }
}

/// Nobody panics while holding one of these in the middle of a change.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
