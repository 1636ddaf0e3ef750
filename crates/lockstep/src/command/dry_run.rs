//! `lockstep run --dry-run`: checks everything that a run would, and prints its plan.

mod script;
mod trees;

use crate::view::{Column, Frame, Table, bytes, count, plural};
use anyhow::{Context, bail};
use lockstep_base::fs::CacheDir;
use lockstep_engine::embed::{Forecast, SetForecast, forecast};
use lockstep_events::event::Event;
use lockstep_gang::tree;
use lockstep_job::{Job, LearnerJob, NetworkJob};
use lockstep_resolve::{ResolvedJob, TrainingSettings};
use lockstep_runs::RunDir;
use lockstep_train::{DataFacts, LayerLine, Prepared};
use serde_json::json;
use std::process::ExitCode;

pub(crate) fn run(job: &Job, as_json: bool) -> anyhow::Result<ExitCode> {
    let text = match &job.learner {
        LearnerJob::Network(own) => network(job, own, as_json)?,
        LearnerJob::Trees(own) => trees::plan(job, own, as_json)?,
        LearnerJob::Script(own) => script::plan(job, own, as_json)?,
    };
    super::print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// The plan of a job that trains a network.
fn network(job: &Job, own: &NetworkJob, as_json: bool) -> anyhow::Result<String> {
    let cache = CacheDir::locate()?;
    let mut tell = |message: &str| eprintln!("{message}");
    let resolved = ResolvedJob::of(job, own)?;
    let mut events = |event| {
        if let Event::Preparing { message } = event {
            tell(&message);
        }
    };
    let forecast = match &resolved.embedding {
        Some(embedding) => Some(forecast(embedding, &mut events)?),
        None => None,
    };
    let settings = &resolved.training;
    let prepared = match &forecast {
        Some(forecast) if forecast.sets.iter().any(|set| set.parts_missing > 0) => {
            lockstep_train::plan(settings, &facts_of(settings, forecast)?)?
        }
        // All vectors are there: they are looked at as a run would.
        _ => lockstep_train::prepare(&resolved, &cache, &mut tell)?.0,
    };
    let embedding = forecast.map_or_else(Vec::new, |forecast| forecast.sets);
    let mut notes = prepared.notes.clone();
    notes.extend(lockstep_train::check_start(settings, &prepared.data)?.notes);
    RunDir::check_store(&resolved.store)?;
    Ok(match as_json {
        true => format!("{}\n", json_plan(own, &prepared, &embedding, &notes)),
        false => words_plan(job, own, &prepared, &embedding, &notes),
    })
}

/// What is said of a plan: facts, each with its name, and then notes.
fn facts_and_notes(pairs: &[(String, String)], notes: &[String]) -> String {
    let facts = Table::for_pairs(pairs, Frame::Rounded, 100).pairs(pairs);
    let mut text = facts.join("\n") + "\n";
    for note in notes {
        text += &format!("\n{note}\n");
    }
    text + "\nnothing was started; without --dry-run this would train\n"
}

/// What training will see of vectors that are not there yet: as many as there are pictures, of the classes that
/// their folders name.
fn facts_of(settings: &TrainingSettings, forecast: &Forecast) -> anyhow::Result<DataFacts> {
    let set = |name: &str| forecast.sets.iter().find(|set| set.set == name);
    let pictures = |name| set(name).map_or(0, |set| set.pictures);
    let train = set("train").context("the job embeds no training set")?;
    for set in &forecast.sets {
        let unknown = |class: &&String| !train.classes.contains(class);
        if let Some(class) = set.classes.iter().find(unknown) {
            let (of, known) = (&set.folder, &train.folder);
            bail!("{of} has the class `{class}`, which {known} has not");
        }
    }
    Ok(DataFacts::of_vectors(
        settings,
        forecast.width,
        train.classes.clone(),
        train.pictures,
        pictures("val"),
        pictures("test"),
    ))
}

fn words_plan(
    job: &Job,
    own: &NetworkJob,
    prepared: &Prepared,
    embedding: &[SetForecast],
    notes: &[String],
) -> String {
    let frame = Frame::Rounded;
    let layers = layers(prepared, frame);
    let mut pairs = facts(job, own, prepared);
    pairs.extend(embedding.iter().map(embeds));
    layers.join("\n") + "\n\n" + &facts_and_notes(&pairs, notes)
}

/// What would be embedded of a set.
fn embeds(set: &SetForecast) -> (String, String) {
    let parts = match set.parts_missing {
        0 => "all there".to_owned(),
        missing => format!("{} of {} to make", missing, plural(set.parts, "part")),
    };
    let pictures = plural(set.pictures, "picture");
    let value = format!("{pictures} to {}: {parts}", set.store);
    (format!("embed {}", set.set), value)
}

fn layers(prepared: &Prepared, frame: Frame) -> Vec<String> {
    let cells = |layer: &LayerLine| {
        [
            layer.name.clone(),
            layer.kind.clone(),
            layer.output.clone(),
            count(layer.parameters as u64),
        ]
    };
    let rows: Vec<[String; 4]> = prepared.layers.iter().map(cells).collect();
    let widest = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let columns = vec![
        Column::left("layer", widest(0)),
        Column::left("kind", widest(1)),
        Column::right("output", widest(2)),
        Column::right("parameters", widest(3)),
    ];
    let table = Table::new(columns, frame);
    let mut lines: Vec<String> = table.top().into_iter().collect();
    lines.extend(table.head(|title| title));
    lines.extend(rows.iter().map(|row| table.row(row)));
    lines.extend(table.foot());
    lines
}

fn facts(job: &Job, own: &NetworkJob, prepared: &Prepared) -> Vec<(String, String)> {
    let train = &own.train;
    let samples = format!(
        "{} to train on, {} to validate, {} to test",
        count(prepared.train_samples as u64),
        count(prepared.val_samples as u64),
        count(prepared.test_samples as u64)
    );
    let steps = format!(
        "{} an epoch, {} in {}",
        count(prepared.steps_per_epoch),
        count(prepared.steps_per_epoch * u64::from(train.learner.epochs)),
        plural(train.learner.epochs as usize, "epoch")
    );
    let lanes: Vec<String> = (0..train.workers.max)
        .map(|rank| {
            tree::lanes_of(rank, train.workers.max, train.lanes)
                .len()
                .to_string()
        })
        .collect();
    let lanes = format!(
        "{} on {}: {}",
        plural(train.lanes, "lane"),
        plural(train.workers.max, "worker"),
        lanes.join(" + ")
    );
    let model = format!(
        "{} parameters, {}",
        count(prepared.parameters as u64),
        bytes(4 * prepared.state_len as u64)
    );
    let memory = format!(
        "about {} a worker and {} shared",
        bytes(prepared.memory.per_worker_bytes as u64),
        bytes(prepared.memory.shared_bytes as u64)
    );
    let pairs = [
        ("samples", samples),
        ("steps", steps),
        ("lanes", lanes),
        ("model", model),
        ("memory", memory),
        ("store", job.run.store.to_string()),
    ];
    pairs.map(|(name, value)| (name.to_owned(), value)).into()
}

fn json_plan(
    own: &NetworkJob,
    prepared: &Prepared,
    embedding: &[SetForecast],
    notes: &[String],
) -> serde_json::Value {
    let train = &own.train;
    let lanes: Vec<usize> = (0..train.workers.max)
        .map(|rank| tree::lanes_of(rank, train.workers.max, train.lanes).len())
        .collect();
    let mut plan = json!({
        "event": "plan",
        "train_samples": prepared.train_samples,
        "val_samples": prepared.val_samples,
        "test_samples": prepared.test_samples,
        "parameters": prepared.parameters,
        "model_bytes": 4 * prepared.state_len,
        "steps_per_epoch": prepared.steps_per_epoch,
        "epochs": train.learner.epochs,
        "lanes_of_workers": lanes,
        "memory": {
            "per_worker_bytes": prepared.memory.per_worker_bytes,
            "shared_bytes": prepared.memory.shared_bytes,
        },
        "layers": prepared.layers,
        "notes": notes,
    });
    if !embedding.is_empty() {
        plan["embed"] = json!(embedding);
    }
    plan
}
