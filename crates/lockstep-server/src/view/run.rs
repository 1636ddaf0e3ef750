//! One run in full: parameters, where it comes from, its files, what happened to it, its logs.

use super::jobs::{AskedLog, Part, part};
use super::run_actions::may_change;
use super::runs::Row;
use super::store::no_run;
use super::{blocking, now};
use crate::{Caller, Refusal, Role, Server};
use axum::Json;
use axum::extract::{Path, Query, State};
use lockstep_index::{Artifact, Kind, Mark, tags};
use lockstep_runs::registry::Registry;
use lockstep_runs::{RunDir, files};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// How long a note and a tag may be.
const LONGEST: usize = 4096;

/// One run in full.
#[derive(Debug, Serialize)]
pub(super) struct Details {
    #[serde(flatten)]
    row: Row,
    lanes: u64,
    parameters: u64,
    bytes: u64,
    best_epoch: Option<u64>,
    weights_sha256: Option<String>,
    commit: Option<String>,
    host: Option<String>,
    data: Vec<lockstep_index::UsedSet>,
    params: BTreeMap<String, Value>,
    origin: Option<Value>,
    result: Option<Value>,
    artifacts: Vec<Artifact>,
    /// Names of series, and how many points each has: what is learned, and what the machines do.
    series: BTreeMap<String, usize>,
    system: BTreeMap<String, usize>,
    marks: Vec<Mark>,
    /// The ranks whose logs there are.
    logs: Vec<u64>,
    /// The versions of models that were made from it.
    models: Vec<String>,
    /// The job that made it.
    submitted: Option<String>,
    has_evaluation: bool,
    /// Whether there are pictures of its hardest mistakes.
    has_pictures: bool,
    /// Whether whoever asks may tag it, remove it and make a model of it.
    may_change: bool,
}

/// What a user says of a run.
#[derive(Debug, Deserialize)]
pub(super) struct RunAnnotations {
    tags: BTreeMap<String, String>,
    note: String,
}

/// What is asked of a worker's log. Its keys stand here one by one: numbers of an address cannot be read through
/// `flatten`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OfRank {
    rank: u64,
    from: Option<u64>,
    to: Option<u64>,
    most: Option<usize>,
}

pub(super) async fn show(
    State(server): State<Server>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<Details>, Refusal> {
    blocking(move || details(&server, &caller, &name).map(Json)).await
}

fn details(server: &Server, caller: &Caller, name: &str) -> Result<Details, Refusal> {
    let store = &server.view().store;
    let found = store.read(|index| index.details(name))?;
    let found = found.ok_or_else(|| no_run(name))?;
    let names = |kind: Kind| {
        let of_kind = found.series.iter().filter(|(found, ..)| *found == kind);
        of_kind
            .map(|(_, name, points)| (name.clone(), *points))
            .collect()
    };
    let files = found.artifacts.iter();
    let mut logs: Vec<u64> = files
        .filter_map(|file| files::rank_of_log(&file.path))
        .collect();
    logs.sort_unstable();
    logs.dedup();
    let registry = Registry::of(store.place()).and_then(|registry| registry.by_run());
    let models = registry.ok().and_then(|mut made| made.remove(name));
    let origin = found.origin.as_ref();
    let submitted = origin.and_then(|origin| origin.get("submitted")?.as_str());
    let has = |name: &str| found.artifacts.iter().any(|file| file.path == name);
    let (has_evaluation, has_pictures) = (has(files::EVALUATION), has(files::MISTAKES));
    Ok(Details {
        lanes: found.run.lanes,
        parameters: found.run.parameters,
        bytes: found.run.bytes,
        best_epoch: found.run.best_epoch,
        weights_sha256: found.run.weights_sha256.clone(),
        commit: found.run.commit.clone(),
        host: found.run.host.clone(),
        data: found.run.data.clone(),
        params: found.run.params.clone(),
        submitted: submitted.map(str::to_owned),
        series: names(Kind::Metric),
        system: names(Kind::System),
        marks: found.run.marks.clone(),
        models: models.unwrap_or_default(),
        row: Row::new(found.run, now()),
        origin: found.origin,
        result: found.result,
        artifacts: found.artifacts,
        logs,
        has_evaluation,
        has_pictures,
        may_change: may_change(server, caller, &store.run(name)?).is_ok(),
    })
}

pub(super) async fn log(
    State(server): State<Server>,
    Path(name): Path<String>,
    Query(of): Query<OfRank>,
) -> Result<Json<Part>, Refusal> {
    blocking(move || {
        let run = server.view().store.run(&name)?;
        let missing = || Refusal::missing(format!("{name} has no log of rank {}", of.rank));
        let rank = usize::try_from(of.rank).map_err(|_| missing())?;
        let file = run.worker_log(rank);
        let entry = file.entry().map_err(Refusal::internal)?;
        let end = entry.ok_or_else(missing)?.size;
        let read = |from: u64, most: usize| {
            let to = (from + most as u64).min(end);
            let bytes = file.read_range(from..to).map_err(Refusal::internal)?;
            Ok((from, bytes))
        };
        let asked = AskedLog {
            from: of.from,
            to: of.to,
            most: of.most,
        };
        part(&asked, (0, end), read).map(Json)
    })
    .await
}

/// The user of the job that made a run, if one did and is remembered.
pub(crate) fn submitter(server: &Server, run: &RunDir) -> Option<String> {
    let found = server.view().store.read(|index| index.details(&run.name));
    let origin = found.ok()??.origin?;
    let job = server.queue().get(origin.get("submitted")?.as_str()?)?;
    Some(job.user)
}

pub(super) async fn tag(
    State(server): State<Server>,
    caller: Caller,
    Path(name): Path<String>,
    Json(said): Json<RunAnnotations>,
) -> Result<Json<tags::Tags>, Refusal> {
    caller.needs(Role::Submit)?;
    let texts = said.tags.iter().flat_map(|(key, value)| [key, value]);
    if said.tags.keys().any(|key| key.trim().is_empty())
        || texts.chain([&said.note]).any(|text| text.len() > LONGEST)
    {
        return Err(Refusal::bad(format!(
            "a tag needs a key, and keys, values and notes have at most {LONGEST} bytes"
        )));
    }
    blocking(move || {
        let run = server.view().store.run(&name)?;
        may_change(&server, &caller, &run)?;
        let changed = tags::change(&run, &|tags| {
            tags.tags.clone_from(&said.tags);
            tags.note.clone_from(&said.note);
        });
        let changed = changed.map_err(Refusal::internal)?;
        server.view().store.read(|index| index.refresh(&run))?;
        Ok(Json(changed))
    })
    .await
}
