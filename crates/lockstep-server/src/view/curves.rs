//! Curves of one run or of several, thinned.

use super::store::no_run;
use super::thin::{By, Curve, Wanted, thin};
use super::{blocking, now};
use crate::{Refusal, Server};
use axum::Json;
use axum::extract::{Query, State};
use lockstep_index::{Kind, Series};
use serde::{Deserialize, Serialize};

/// The most runs over each other.
const MOST_RUNS: usize = 20;
/// The most columns, and how many there are if nobody says.
const WIDTHS: (usize, usize) = (4000, 800);

/// Which curves are asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CurveQuery {
    /// Names of runs, with commas between them.
    runs: String,
    /// Names of series, with commas between them; all that are learned if it is empty.
    names: String,
    /// Whether series of the machines are meant.
    system: bool,
    /// `step` or `time`.
    by: String,
    width: Option<usize>,
    from: Option<f64>,
    to: Option<f64>,
}

/// The curves of a run.
#[derive(Debug, Serialize)]
pub(super) struct OfRun {
    run: String,
    started: Option<f64>,
    series: Vec<Named>,
}

/// One curve.
#[derive(Debug, Serialize)]
pub(super) struct Named {
    pub(super) name: String,
    /// How many points it has.
    pub(super) points: usize,
    /// The last one: step, time and value.
    pub(super) last: Option<(u64, f64, f32)>,
    #[serde(flatten)]
    pub(super) curve: Curve,
}

impl Named {
    pub(super) fn new(series: Series, wanted: &Wanted) -> Named {
        let last = series.points.last();
        Named {
            points: series.points.len(),
            last: last.map(|point| (point.step, point.time, point.value as f32)),
            curve: thin(&series.points, wanted),
            name: series.name,
        }
    }
}

pub(super) async fn show(
    State(server): State<Server>,
    Query(asked): Query<CurveQuery>,
) -> Result<Json<Vec<OfRun>>, Refusal> {
    let runs: Vec<String> = words(&asked.runs);
    if runs.is_empty() || runs.len() > MOST_RUNS {
        return Err(Refusal::bad(format!(
            "runs: name 1 to {MOST_RUNS} of them, with commas between"
        )));
    }
    let by = match asked.by.as_str() {
        "" | "step" => By::Step,
        "time" => By::Time,
        other => return Err(Refusal::bad(format!("by: {other:?} is not step or time"))),
    };
    blocking(move || {
        let of = |name: &String| curves(&server, name, by, &asked);
        runs.iter().map(of).collect::<Result<_, _>>().map(Json)
    })
    .await
}

fn curves(server: &Server, run: &str, by: By, asked: &CurveQuery) -> Result<OfRun, Refusal> {
    let names = words(&asked.names);
    let wanted = |kind: Kind, name: &str| {
        let kind = (kind == Kind::System) == asked.system;
        kind && (names.is_empty() || names.iter().any(|wanted| wanted == name))
    };
    let found = server.view().store.read(|index| {
        let details = index.details(run)?;
        Ok(details.map(|details| (details.run.started, index.series(run, wanted))))
    })?;
    let (started, series) = found.ok_or_else(|| no_run(run))?;
    let wanted = Wanted {
        by,
        began: started.unwrap_or_else(now),
        width: asked.width.unwrap_or(WIDTHS.1).clamp(1, WIDTHS.0),
        range: (
            asked.from.unwrap_or(f64::NEG_INFINITY),
            asked.to.unwrap_or(f64::INFINITY),
        ),
    };
    let series = series.map_err(Refusal::internal)?;
    let series = series.into_iter().map(|one| Named::new(one, &wanted));
    Ok(OfRun {
        run: run.to_owned(),
        started,
        series: series.collect(),
    })
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(',').filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}
