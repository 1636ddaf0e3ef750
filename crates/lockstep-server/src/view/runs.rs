//! The list of runs.

use super::{blocking, now};
use crate::{Refusal, Server};
use axum::Json;
use axum::extract::{Query, State};
use lockstep_index::filter::{Filter, Names, Subject, Worth, sort_by, worth};
use lockstep_index::{Keys, Run, State as RunState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// So many runs are sent if nobody says how many.
const USUAL: usize = 100;
/// The most that are sent at once.
const MOST: usize = 1000;

/// What is asked of the list.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RunListQuery {
    /// Which runs, in the language of `lockstep runs list`.
    filter: String,
    /// What they are sorted by; the newest come first if it is empty.
    sort: String,
    /// Whether the smallest comes first.
    ascending: bool,
    /// Further columns, with commas between them.
    columns: String,
    offset: usize,
    limit: Option<usize>,
}

/// A run as lists have it.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) name: String,
    /// What a client of MLflow's calls it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) run_name: String,
    pub(super) job: String,
    pub(super) state: RunState,
    pub(super) started: Option<f64>,
    pub(super) ended: Option<f64>,
    pub(super) duration_s: Option<f64>,
    pub(super) workers: u64,
    pub(super) epochs: u64,
    pub(super) epochs_done: u64,
    pub(super) step: u64,
    pub(super) steps_per_epoch: u64,
    pub(super) restarts: u64,
    pub(super) resumes: u64,
    pub(super) samples_per_s: Option<f64>,
    pub(super) error: Option<String>,
    pub(super) user: Option<String>,
    /// What its epochs are measured by; what is minimised comes first.
    pub(super) measured: Vec<String>,
    pub(super) metrics: BTreeMap<String, f64>,
    pub(super) tags: BTreeMap<String, String>,
    pub(super) note: String,
    /// The columns that were asked for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) values: BTreeMap<String, Cell>,
}

/// What stands in a column.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Cell {
    Number(f64),
    Text(String),
}

/// A part of the list.
#[derive(Debug, Serialize)]
pub(super) struct List {
    /// How many runs the filter chooses, and how many there are.
    chosen: usize,
    total: usize,
    offset: usize,
    runs: Vec<Row>,
}

/// The names that columns and filters may use.
#[derive(Debug, Serialize)]
pub(super) struct Known {
    metrics: Vec<String>,
    params: Vec<String>,
    tags: Vec<String>,
}

impl Row {
    pub(super) fn new(run: Run, now: f64) -> Row {
        Row {
            duration_s: run.duration(now),
            name: run.name,
            run_name: run.run_name,
            job: run.job,
            state: run.state,
            started: run.started,
            ended: run.ended,
            workers: run.workers,
            epochs: run.epochs,
            epochs_done: run.epochs_done,
            step: run.step,
            steps_per_epoch: run.steps_per_epoch,
            restarts: run.restarts,
            resumes: run.resumes,
            samples_per_s: run.samples_per_s,
            error: run.error,
            user: run.user,
            measured: run.measured,
            metrics: run.metrics,
            tags: run.tags,
            note: run.note,
            values: BTreeMap::new(),
        }
    }
}

pub(super) async fn list(
    State(server): State<Server>,
    Query(asked): Query<RunListQuery>,
) -> Result<Json<List>, Refusal> {
    blocking(move || choose(&server, &asked).map(Json)).await
}

pub(super) async fn names(State(server): State<Server>) -> Result<Json<Known>, Refusal> {
    let names = blocking(move || server.view().store.read(|index| index.names())).await?;
    Ok(Json(Known {
        metrics: names.metrics.into_iter().collect(),
        params: names.params.into_iter().collect(),
        tags: names.tags.into_iter().collect(),
    }))
}

fn choose(server: &Server, asked: &RunListQuery) -> Result<List, Refusal> {
    let store = &server.view().store;
    let columns: Vec<&str> = asked.columns.split(',').filter(|c| !c.is_empty()).collect();
    // Looking up names takes a look at all runs, which most lists do without.
    let named = !(asked.filter.trim().is_empty() && asked.sort.is_empty() && columns.is_empty());
    let names = match named {
        true => store.read(|index| index.names())?,
        false => Names::default(),
    };
    let is_empty = names.params.is_empty() && names.metrics.is_empty();
    let wrong_name = |(message, label)| Refusal::bad(format!("{message}; {label}"));
    let find = |name: &str| match is_empty {
        true => Ok(Subject::Metric(name.to_owned())),
        false => names.find(name).map_err(wrong_name),
    };
    let shown = columns.iter().map(|name| Ok((*name, find(name)?)));
    let shown: Vec<(&str, Subject)> = shown.collect::<Result<_, Refusal>>()?;
    let sort = match asked.sort.as_str() {
        "" => None,
        name => Some(find(name)?),
    };
    let subjects = shown.iter().map(|(_, subject)| subject).chain(&sort);
    let mut keys: Vec<String> = subjects.clone().flat_map(Subject::keys).cloned().collect();
    let wrong = |error: lockstep_index::filter::FilterError| Refusal::bad(error.to_string());
    let filter = match asked.filter.trim() {
        "" => None,
        text => Some(Filter::parse(text).map_err(wrong)?),
    };
    let resolved = match (&filter, is_empty) {
        (Some(filter), false) => {
            let resolved = filter.resolve(&names).map_err(wrong)?;
            keys.extend(resolved.params());
            Some(resolved)
        }
        _ => None,
    };
    let keys = Keys::Some(keys);
    let mut runs = store.read(|index| index.runs(&keys))?;
    let (now, total) = (now(), runs.len());
    for subject in subjects {
        subject.check(&runs).map_err(wrong_name)?;
    }
    if let Some(resolved) = resolved {
        resolved.check(&runs).map_err(wrong)?;
        runs.retain(|run| resolved.holds(run, now));
    }
    match &sort {
        Some(subject) => sort_by(&mut runs, subject, asked.ascending, now),
        None if asked.ascending => runs.reverse(),
        None => {}
    }
    let chosen = runs.len();
    let limit = asked.limit.unwrap_or(USUAL).min(MOST);
    let row = |run: Run| {
        let cell = |(name, subject): &(&str, Subject)| {
            let cell = match worth(subject, &run, now)? {
                Worth::Number(number) => Cell::Number(number),
                Worth::Text(text) => Cell::Text(text),
            };
            Some(((*name).to_owned(), cell))
        };
        let values = shown.iter().filter_map(cell).collect();
        Row {
            values,
            ..Row::new(run, now)
        }
    };
    let page = runs.into_iter().skip(asked.offset).take(limit);
    Ok(List {
        chosen,
        total,
        offset: asked.offset,
        runs: page.map(row).collect(),
    })
}
