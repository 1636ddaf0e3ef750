//! The first page: what runs now, what came of the last runs, and the machine.

use super::curves::Named;
use super::jobs::{self, Counts};
use super::machine::Sample;
use super::runs::Row;
use super::thin::{By, Wanted};
use super::{blocking, now};
use crate::{Refusal, Server};
use axum::Json;
use axum::extract::State;
use lockstep_index::{Index, IndexError, Keys, Kind, Run, State as RunState};
use lockstep_queue::JobStatus;
use serde::Serialize;

/// How many runs that go on are shown with their curves.
const GOING: usize = 6;
/// How many that have ended are shown.
const ENDED: usize = 8;
/// How many jobs that wait or run are shown.
const JOBS: usize = 8;
/// How many columns a small curve has.
const WIDTH: usize = 320;

/// What is on the first page.
#[derive(Debug, Serialize)]
pub(super) struct Overview {
    /// Where the runs are, for people.
    store: String,
    version: &'static str,
    counts: Counts,
    going: Vec<Going>,
    /// How many runs go on, and how many there are.
    going_count: usize,
    runs: usize,
    ended: Vec<Row>,
    jobs: Vec<jobs::Row>,
    machine: Sample,
}

/// A run that goes on, with its curve.
#[derive(Debug, Serialize)]
struct Going {
    #[serde(flatten)]
    row: Row,
    curves: Vec<Named>,
}

pub(super) async fn show(State(server): State<Server>) -> Result<Json<Overview>, Refusal> {
    blocking(move || {
        let now = now();
        let store = &server.view().store;
        let runs = store.read(|index| index.runs(&Keys::Some(Vec::new())))?;
        let is_going = |run: &&Run| run.state == RunState::Running;
        let going: Vec<Run> = runs.iter().filter(is_going).take(GOING).cloned().collect();
        let going_count = runs.iter().filter(is_going).count();
        let count = runs.len();
        let ended = runs.into_iter().filter(|run| run.has_ended());
        let ended = ended.take(ENDED).map(|run| Row::new(run, now)).collect();
        let going = store.read(|index| {
            let with_curves = going.iter().map(|run| with_curves(index, run.clone(), now));
            with_curves.collect::<Result<_, _>>()
        })?;
        let all = server.queue().list();
        let active = all.iter().rev();
        let active = active.filter(|job| !job.status.is_final()).cloned();
        let mut active: Vec<_> = active.collect();
        active.sort_by_key(|job| job.status != JobStatus::Running);
        active.truncate(JOBS);
        Ok(Json(Overview {
            store: store.place().to_string(),
            version: env!("CARGO_PKG_VERSION"),
            counts: Counts::of(&all, now),
            going,
            going_count,
            runs: count,
            ended,
            jobs: active.into_iter().map(jobs::Row::new).collect(),
            machine: Sample::take(&server),
        }))
    })
    .await
}

fn with_curves(index: &Index, run: Run, now: f64) -> Result<Going, IndexError> {
    let first = run.measured.first().map_or("loss", String::as_str);
    let of_val = format!("val.{first}");
    let of_train = format!("train.{first}");
    let wanted = |kind: Kind, name: &str| {
        kind == Kind::Metric && (name == first || name == of_val || name == of_train)
    };
    let mut series = index.series(&run.name, wanted)?;
    if series.is_empty() {
        // A script names its metrics as it likes.
        series = index.series(&run.name, |kind, _| kind == Kind::Metric)?;
        series.truncate(1);
    }
    let shape = Wanted {
        by: By::Step,
        began: run.started.unwrap_or(now),
        width: WIDTH,
        range: (f64::NEG_INFINITY, f64::INFINITY),
    };
    Ok(Going {
        curves: series
            .into_iter()
            .map(|one| Named::new(one, &shape))
            .collect(),
        row: Row::new(run, now),
    })
}
