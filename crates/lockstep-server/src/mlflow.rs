//! The part of MLflow's REST interface that its clients log runs with, so that a script with `mlflow.start_run` writes into
//! the same store as `lockstep run`.
//!
//! An experiment is what Lockstep calls a job, and a run's id is its name in the store. What clients log becomes the files
//! that every run of Lockstep has ([`record`] says which), so `lockstep runs` and the pages show it without knowing MLflow.
//! The other way round, Lockstep's own runs are experiments and runs for MLflow's clients: they can be searched, read
//! and tagged.

mod artifacts;
mod error;
mod experiment_routes;
mod experiments;
mod filter;
mod logged_model_routes;
mod logged_models;
mod owners;
mod record;
mod registry_routes;
mod request_fields;
mod run_routes;
mod search;
mod version_routes;
mod view;
mod writer;

pub(crate) use error::MlflowError;
pub(crate) use owners::may_change_model;

use crate::endpoint::{Endpoint, TEXT};
use crate::{Caller, Refusal, Server, Settings};
use axum::routing::any;
use axum::{Json, Router};
use experiments::{Experiment, Experiments};
use http::Uri;
use lockstep_index::{Index, Keys, Run};
use lockstep_runs::RunDir;
use record::{Point, Record};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};
use view::View;
use writer::Writers;

/// The version of MLflow whose clients this was tried with.
const VERSION: &str = "3.17.2";

/// The newest point of each metric.
type Latest = BTreeMap<String, Point>;

/// What this part of the server keeps.
#[derive(Debug)]
pub(crate) struct Mlflow {
    experiments: Experiments,
    writers: Writers,
    index: Mutex<Option<Index>>,
    /// The newest points of runs that nobody closed, by how long their records were.
    unclosed: Mutex<HashMap<String, (u64, Latest)>>,
}

impl Mlflow {
    /// That of a server.
    pub(crate) fn new(settings: &Settings) -> Mlflow {
        Mlflow {
            experiments: Experiments::of(&settings.folder),
            writers: Writers::default(),
            index: Mutex::default(),
            unclosed: Mutex::default(),
        }
    }
}

/// The prefixes of MLflow's routes. Both mean the same; the first is the one that is described.
const PREFIXES: [&str; 2] = ["/api/2.0/mlflow", "/api/3.0/mlflow"];

pub(crate) fn endpoints() -> Vec<Endpoint> {
    let mut all = vec![
        Endpoint::get("/health", async || "OK", "The same in MLflow's words").answer(TEXT),
        Endpoint::get(
            "/version",
            async || VERSION,
            "The version of MLflow whose clients are understood",
        )
        .answer(TEXT),
    ];
    all.extend(artifacts::endpoints());
    for (number, prefix) in PREFIXES.into_iter().enumerate() {
        let inner = experiment_routes::endpoints().into_iter();
        let inner = inner.chain(run_routes::endpoints());
        let inner = inner.chain(logged_model_routes::endpoints());
        let inner = inner.chain(registry_routes::endpoints());
        let inner = inner.chain(version_routes::endpoints());
        let inner = inner.chain(kept_elsewhere());
        all.extend(inner.map(|one| match number {
            0 => one.under(prefix),
            _ => one.under(prefix).undescribed(),
        }));
    }
    all
}

/// Lists of what MLflow's own server keeps and this one does not: clients that look for it go on.
fn kept_elsewhere() -> [Endpoint; 4] {
    let none = |key: &'static str| async move || Json(json!({ key: [] }));
    let (webhooks, traces) = ("MLflow's webhooks: none", "MLflow's traces: none");
    [
        Endpoint::get("/webhooks", none("webhooks"), webhooks),
        Endpoint::get("/traces", none("traces"), traces),
        Endpoint::post("/traces", unknown, "Refused: traces are not kept"),
        Endpoint::post("/traces/search", none("traces"), traces).reads(),
    ]
}

/// What answers below the prefixes where no route is.
pub(crate) fn unknown_routes() -> Router<Server> {
    PREFIXES.iter().fold(Router::new(), |all, prefix| {
        all.route(&format!("{prefix}/{{*rest}}"), any(unknown))
    })
}

async fn unknown(uri: Uri) -> MlflowError {
    MlflowError::unknown(uri.path())
}

/// What a route answers.
type Answer = Result<Json<Value>, MlflowError>;

/// Does work that waits for files where that holds up nobody.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, MlflowError> + Send + 'static,
) -> Result<T, MlflowError> {
    tokio::task::spawn_blocking(work).await?
}

/// Milliseconds since 1970.
fn now() -> i64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

/// Asks the index of the store something. The question brings it up to date as far as it needs that.
pub(crate) fn ask<T>(
    server: &Server,
    question: impl Fn(&mut Index) -> Result<T, lockstep_index::IndexError>,
) -> Result<T, MlflowError> {
    let settings = server.settings();
    let index = &server.mlflow().index;
    let mut index = index.lock().unwrap_or_else(|broken| broken.into_inner());
    if index.is_none() {
        *index = Some(Index::open(&settings.store, Some(&settings.cache))?);
    }
    let Some(index) = index.as_mut() else {
        return Err(MlflowError::state("the index is not open"));
    };
    Ok(index.ask(question)?)
}

/// The run of this id.
fn run_dir(server: &Server, id: &str) -> Result<RunDir, MlflowError> {
    let missing = || MlflowError::missing(format!("Run with id={id:.200} not found"));
    // An id is never a path.
    if id.starts_with('.') || id.contains(['/', '\\']) {
        return Err(missing());
    }
    let place = server.settings().store.join(id).map_err(|_| missing())?;
    let run = RunDir::named(id, place);
    match run.job().entry() {
        Ok(Some(_)) => Ok(run),
        _ => Err(missing()),
    }
}

/// Refuses a caller who may not change what is said of a run: that is for its owner and for admins. A run of Lockstep's
/// own is of whoever submitted the job that made it.
fn may_change(server: &Server, caller: &Caller, run: &RunDir) -> Result<(), MlflowError> {
    let owner = match record_of(server, run)? {
        Some(record) => record.owner,
        None => crate::view::submitter(server, run),
    };
    match caller.owns(owner.as_deref()) {
        true => Ok(()),
        false => Err(not_own(caller, "run", &run.name, owner.as_deref())),
    }
}

/// The same for the pages.
pub(crate) fn may_annotate(server: &Server, caller: &Caller, run: &RunDir) -> Result<(), Refusal> {
    may_change(server, caller, run).map_err(Refusal::from)
}

/// Something is somebody else's.
fn not_own(caller: &Caller, kind: &str, name: &str, owner: Option<&str>) -> MlflowError {
    let of = owner.map_or("nobody that is known here".to_owned(), str::to_owned);
    MlflowError::forbidden(format!(
        "the {kind} {name} is of {of}; {} may change only what is its own, and admins everything",
        caller.name
    ))
}

/// All runs of the store, and all experiments.
fn everything(server: &Server) -> Result<(Vec<Run>, Vec<Experiment>), MlflowError> {
    let runs = ask(server, |index| {
        index.refresh_all()?;
        index.runs(&Keys::All)
    })?;
    let experiments = server
        .mlflow()
        .experiments
        .all(runs.iter().map(|run| run.job.as_str()))?;
    Ok((runs, experiments))
}

/// What MLflow knows of a run; nothing if it did not make it.
fn record_of(server: &Server, run: &RunDir) -> Result<Option<Record>, MlflowError> {
    let mlflow = server.mlflow();
    if let Some(record) = mlflow.writers.record(&run.name) {
        return Ok(Some(record));
    }
    let Some(mut record) = Record::read(run)? else {
        return Ok(None);
    };
    if !record.closed {
        let size = run
            .file(lockstep_runs::files::EVENTS)
            .entry()?
            .map_or(0, |entry| entry.size);
        let mut unclosed = mlflow
            .unclosed
            .lock()
            .unwrap_or_else(|broken| broken.into_inner());
        match unclosed.get(&run.name) {
            Some((seen, latest)) if *seen == size && size > 0 => record.latest.clone_from(latest),
            _ => {
                writer::each_point(run, |key, point| record.note(key, &point))?;
                unclosed.insert(run.name.clone(), (size, record.latest.clone()));
            }
        }
    }
    Ok(Some(record))
}

/// One run as clients see it.
fn view(server: &Server, id: &str) -> Result<View, MlflowError> {
    let run = run_dir(server, id)?;
    let found = ask(server, |index| {
        index.refresh(&run)?;
        index.details(&run.name)
    })?;
    let Some(found) = found else {
        return Err(MlflowError::missing(format!(
            "Run with id={id:.200} not found"
        )));
    };
    let experiments = server
        .mlflow()
        .experiments
        .all([found.run.job.as_str()].into_iter())?;
    Ok(View::of(&found.run, record_of(server, &run)?, &experiments))
}
