//! `lockstep run --dry-run`: checks everything that a run would, and prints its plan.

use crate::args::Engine;
use crate::view::{Frame, Table, bytes, columns, count, plural, shell, threads_of};
use anyhow::{Context, bail};
use lockstep_base::fs::CacheDir;
use lockstep_engine::embed::{self, SetForecast};
use lockstep_events::event::Event;
use lockstep_job::Job;
use lockstep_learner::{Fact, Forecast, LayerLine, VectorFacts};
use lockstep_resolve::place;
use lockstep_runs::RunDir;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn run(job: &Job, engine: Engine, as_json: bool) -> anyhow::Result<ExitCode> {
    let mut tell = |message: &str| super::tell(message);
    let learner = super::coordinator(engine)(job, Path::new(""))?;
    let mut events = |event| {
        if let Event::Preparing { message } = event {
            tell(&message);
        }
    };
    let vectors = match learner.embedding() {
        Some(embedding) => Some(embed::forecast(embedding, &mut events)?),
        None => None,
    };
    // Where all vectors are there, they are looked at as a run would.
    let missing = vectors
        .as_ref()
        .filter(|vectors| vectors.sets.iter().any(|set| set.parts_missing > 0));
    let missing = missing.map(vector_facts).transpose()?;
    let mut forecast = learner.forecast(missing.as_ref(), &CacheDir::locate()?, &mut tell)?;
    RunDir::check_store(&place(&job.run.store, &job.storage)?)?;
    super::print(match as_json {
        true => {
            if let Some(embedding) = &vectors {
                forecast.json["embed"] = json!(embedding.sets);
                forecast.json["embed_device"] = json!(embedding.device);
            }
            format!("{}\n", forecast.json)
        }
        false => in_words(job, &forecast, vectors.as_ref()),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What training will see of vectors that are not there yet: as many as there are pictures, of the classes that
/// their folders name.
fn vector_facts(forecast: &embed::Forecast) -> anyhow::Result<VectorFacts> {
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
    Ok(VectorFacts {
        width: forecast.width,
        classes: train.classes.clone(),
        train: train.pictures,
        val: pictures("val"),
        test: pictures("test"),
    })
}

fn in_words(job: &Job, forecast: &Forecast, embedding: Option<&embed::Forecast>) -> String {
    let frame = Frame::Rounded;
    let facts = forecast.facts.iter();
    let facts = facts.map(|(name, fact)| ((*name).to_owned(), fact_in_words(fact)));
    let mut pairs: Vec<(String, String)> = facts.collect();
    pairs.push(("store".to_owned(), job.run.store.to_string()));
    if let Some(embedding) = embedding {
        pairs.extend(embedding.sets.iter().map(embeds));
        pairs.push(("encoder on".to_owned(), embedding.device.clone()));
    }
    let mut text = String::new();
    if !forecast.layers.is_empty() {
        text = layers(&forecast.layers, frame) + "\n";
    }
    text += &Table::for_pairs(&pairs, frame, 100)
        .pairs(&pairs)
        .join("\n");
    text += "\n";
    for note in &forecast.notes {
        text += &format!("\n{note}\n");
    }
    text + "\nnothing was started; without --dry-run this would train\n"
}

fn fact_in_words(fact: &Fact) -> String {
    match fact {
        Fact::Samples { train, val, test } => format!(
            "{} to train on, {} to validate, {} to test",
            count(*train as u64),
            count(*val as u64),
            count(*test as u64)
        ),
        Fact::Steps { per_epoch, epochs } => format!(
            "{} an epoch, {} in {}",
            count(*per_epoch),
            count(per_epoch * u64::from(*epochs)),
            plural(*epochs as usize, "epoch")
        ),
        Fact::Lanes(lanes) => {
            let each: Vec<String> = lanes.iter().map(usize::to_string).collect();
            format!(
                "{} on {}: {}",
                plural(lanes.iter().sum(), "lane"),
                plural(lanes.len(), "worker"),
                each.join(" + ")
            )
        }
        Fact::Model {
            parameters,
            bytes: state,
        } => format!(
            "{} parameters, {}",
            count(*parameters as u64),
            bytes(*state as u64)
        ),
        Fact::Memory { per_worker, shared } => format!(
            "about {} a worker and {} shared",
            bytes(*per_worker as u64),
            bytes(*shared as u64)
        ),
        Fact::Workers(workers) => plural(*workers, "worker"),
        Fact::Threads(threads) => threads_of(threads),
        Fact::Command(words) => {
            let words: Vec<String> = words.iter().map(|word| shell(word)).collect();
            words.join(" ")
        }
        Fact::Words(words) => words.clone(),
    }
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

fn layers(layers: &[LayerLine], frame: Frame) -> String {
    let cells = |layer: &LayerLine| {
        [
            layer.name.clone(),
            layer.kind.clone(),
            layer.output.clone(),
            count(layer.parameters as u64),
        ]
    };
    let rows: Vec<[String; 4]> = layers.iter().map(cells).collect();
    let columns = columns(&["layer", "kind", ">output", ">parameters"], &rows);
    Table::new(columns, frame).filled(&rows, |title| title)
}
