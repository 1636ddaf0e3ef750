//! `lockstep run --folds 5`: trains a job as often as there are folds, each time tested on another one.
//!
//! Every fold is a run of its own, whose job names its fold, so that it can be resumed, evaluated and replayed like any
//! other. What all of them came to is said at the end: each measure, its mean and its deviation.

use super::scratch::ScratchStore;
use super::{print, run_request};
use crate::args::RunArgs;
use crate::signals::{self, INTERRUPTED};
use crate::view::lines_of;
use anyhow::{Context, bail};
use lockstep_base::fs::CacheDir;
use lockstep_engine::{Stop, StopFlag};
use lockstep_events::event::{Event, RunResult, Status};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::ExitCode;

/// What a fold came to.
struct Tested {
    fold: usize,
    run: String,
    measures: Vec<(String, f64)>,
}

/// What a measure came to over all folds.
struct Spread {
    name: String,
    mean: f64,
    deviation: f64,
}

pub(crate) fn run(args: &RunArgs, folds: usize) -> anyhow::Result<ExitCode> {
    let scratch = match args.discard {
        true => Some(ScratchStore::new()?),
        false => None,
    };
    let stop = StopFlag::new();
    signals::obey(stop.clone())?;
    let mut tested = Vec::new();
    for fold in 1..=folds {
        let result = train(args, (fold, folds), scratch.as_ref(), &stop)
            .with_context(|| format!("fold {fold} of {folds}"))?;
        match (result.status, &result.error) {
            (Status::Succeeded, _) => {}
            (Status::Interrupted, _) => return Ok(ExitCode::from(INTERRUPTED)),
            (Status::Failed, error) => {
                let why = error.as_deref().unwrap_or("the run failed");
                bail!("fold {fold} of {folds}: {why}");
            }
        }
        let fold = of_result(fold, &result)?;
        if !args.show.quiet && !args.show.json {
            let measures = fold.measures.iter();
            let measures: Vec<String> = measures
                .map(|(name, value)| format!("{name} {value:.4}"))
                .collect();
            eprintln!("fold {} of {folds}  {}", fold.fold, measures.join("  "));
        }
        tested.push(fold);
    }
    let spreads = spreads(&tested);
    let text = match args.show.json {
        true => as_json(&tested, &spreads, args.discard).to_string() + "\n",
        false => as_table(&tested, &spreads, args.discard),
    };
    print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// Trains without the rows of one fold, and tests on them.
fn train(
    args: &RunArgs,
    (fold, folds): (usize, usize),
    scratch: Option<&ScratchStore>,
    stop: &StopFlag,
) -> anyhow::Result<RunResult> {
    let mut job = args.job.clone();
    job.set.push(format!("data.split.fold={fold}"));
    job.set.push(format!("data.split.folds={folds}"));
    let mut job = job.load()?;
    job.name = format!("{}-fold{fold}", job.name);
    if let Some(scratch) = scratch {
        job.run.store = scratch.location();
    }
    let file = std::path::absolute(&args.job.path).context("cannot find the job file's folder")?;
    let folder = file.parent().map(Path::to_owned).unwrap_or_default();
    let (engine, cache) = (args.engine.engine, CacheDir::locate()?);
    let request = run_request(job, folder, engine, cache, stop.clone())?;
    let result = lockstep_engine::run(request, &mut |event| match event {
        Event::Warning { message } => eprintln!("fold {fold}: warning: {message}"),
        Event::Note { message } if fold == 1 && args.show.verbose => eprintln!("{message}"),
        _ => {}
    })?;
    match stop.get() {
        Stop::No => Ok(result),
        Stop::Graceful | Stop::Now => Ok(RunResult {
            status: Status::Interrupted,
            ..result
        }),
    }
}

/// The measures of a fold: those of its epochs, and those that an evaluation has beside them.
fn of_result(fold: usize, result: &RunResult) -> anyhow::Result<Tested> {
    let metrics = result.metrics.as_ref();
    let metrics = metrics.context("there is nothing to compare: the run was not tested")?;
    let measures = metrics.iter().map(|(name, value)| (name.to_owned(), value));
    let mut measures: Vec<(String, f64)> = measures.collect();
    let summary = serde_json::to_value(&result.evaluation)?;
    for name in ["auc", "average_precision", "r2", "mae", "rmse"] {
        let is_known = measures.iter().any(|(known, _)| known == name);
        if let Some(value) = summary[name].as_f64().filter(|_| !is_known) {
            measures.push((name.to_owned(), value));
        }
    }
    if let Some(f1) = summary["macro_average"]["f1"].as_f64() {
        measures.push(("f1".to_owned(), f1));
    }
    Ok(Tested {
        fold,
        run: result.run.clone().unwrap_or_default(),
        measures,
    })
}

/// The mean and the deviation of every measure that all folds have.
fn spreads(tested: &[Tested]) -> Vec<Spread> {
    let names = tested.first().into_iter().flat_map(|fold| &fold.measures);
    let spread = |(name, _): &(String, f64)| {
        let value = |fold: &Tested| {
            let found = fold.measures.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| *value)
        };
        let values: Vec<f64> = tested.iter().map(value).collect::<Option<_>>()?;
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Spread {
            name: name.clone(),
            mean,
            deviation: (squares / (count - 1.0).max(1.0)).sqrt(),
        })
    };
    names.filter_map(spread).collect()
}

fn as_table(tested: &[Tested], spreads: &[Spread], discarded: bool) -> String {
    let mut titles = vec!["fold".to_owned()];
    titles.extend(spreads.iter().map(|spread| format!(">{}", spread.name)));
    let mut rows: Vec<Vec<String>> = Vec::new();
    for fold in tested {
        let mut row = vec![fold.fold.to_string()];
        row.extend(spreads.iter().map(|spread| {
            let measures = fold.measures.iter();
            let mut named = measures.filter(|(name, _)| *name == spread.name);
            let value = named.next().map_or(f64::NAN, |(_, value)| *value);
            format!("{value:.4}")
        }));
        rows.push(row);
    }
    let means = spreads.iter().map(|spread| format!("{:.4}", spread.mean));
    let deviations = spreads
        .iter()
        .map(|spread| format!("{:.4}", spread.deviation));
    rows.push(std::iter::once("mean".to_owned()).chain(means).collect());
    rows.push(
        std::iter::once("deviation".to_owned())
            .chain(deviations)
            .collect(),
    );
    if !discarded {
        titles.push("run".to_owned());
        let runs = tested.iter().map(|fold| fold.run.clone());
        for (row, run) in rows
            .iter_mut()
            .zip(runs.chain([String::new(), String::new()]))
        {
            row.push(run);
        }
    }
    lines_of(&titles, &rows)
}

fn as_json(tested: &[Tested], spreads: &[Spread], discarded: bool) -> Value {
    let named = |measures: &mut dyn Iterator<Item = (String, f64)>| {
        let each = measures.map(|(name, value)| (name, json!(value)));
        Value::Object(each.collect::<Map<String, Value>>())
    };
    let folds = tested.iter().map(|fold| {
        json!({
            "fold": fold.fold,
            "run": (!discarded).then_some(&fold.run),
            "metrics": named(&mut fold.measures.iter().cloned()),
        })
    });
    let mut means = spreads
        .iter()
        .map(|spread| (spread.name.clone(), spread.mean));
    let mut deviations = spreads
        .iter()
        .map(|spread| (spread.name.clone(), spread.deviation));
    json!({
        "event": "folds",
        "folds": folds.collect::<Vec<_>>(),
        "mean": named(&mut means),
        "deviation": named(&mut deviations),
    })
}
