//! `lockstep runs export`: metrics of runs, point by point.

use super::row;
use super::store::Store;
use crate::args::ExportRunsArgs;
use crate::command::print;
use anyhow::Context;
use lockstep_events::current_name;
use lockstep_index::{Keys, Kind};
use serde_json::json;

pub(super) fn run(args: &ExportRunsArgs) -> anyhow::Result<()> {
    let mut store = Store::holding(&args.store, &args.runs)?;
    let mut names = Vec::new();
    for given in &args.runs {
        names.push(store.find(given)?);
    }
    if args.runs.is_empty() {
        let known = store.names()?;
        let chosen = store.choose(args.filter.as_deref(), &known, Keys::Some(Vec::new()))?;
        names.extend(chosen.into_iter().map(|run| run.name));
    }
    let wanted = |kind: Kind, name: &str| {
        let is_called =
            |metric: &String| metric == name || current_name(metric).is_some_and(|now| now == name);
        let named = args.metric.is_empty() || args.metric.iter().any(is_called);
        named && (kind == Kind::Metric || args.system || !args.metric.is_empty())
    };
    let mut objects = Vec::new();
    let mut rows = Vec::new();
    for name in &names {
        for series in store.ask(|index| index.series(name, wanted))? {
            let kind = match series.kind {
                Kind::Metric => "metric",
                Kind::System => "system",
            };
            for point in &series.points {
                match args.json {
                    true => objects.push(json!({
                        "run": name, "kind": kind, "name": series.name,
                        "step": point.step, "time": point.time, "value": point.value,
                    })),
                    false => rows.push(vec![
                        name.clone(),
                        kind.to_owned(),
                        series.name.clone(),
                        point.step.to_string(),
                        point.time.to_string(),
                        point.value.to_string(),
                    ]),
                }
            }
        }
    }
    let head = ["run", "kind", "name", "step", "time", "value"].map(str::to_owned);
    let text = match args.json {
        true => serde_json::to_string(&objects)? + "\n",
        false => row::csv(&head, &rows)?,
    };
    match &args.out {
        None => Ok(print(text)?),
        Some(path) => lockstep_base::fs::write_atomic(path, text.as_bytes())
            .with_context(|| format!("cannot write {}", path.display())),
    }
}
