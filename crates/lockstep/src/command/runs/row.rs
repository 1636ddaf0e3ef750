//! A run as a row: for people, for programs, and in CSV.

use crate::view::{ROUNDS, count, harmless, metric, seconds};
use console::style;
use lockstep_index::filter::{Field, Subject, Worth, worth};
use lockstep_index::{Run, State, dates};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What of a run is shown in a cell.
pub(super) fn cell(subject: &Subject, run: &Run, now: f64) -> String {
    let number = match (subject, worth(subject, run, now)) {
        (_, None) => return String::new(),
        (_, Some(Worth::Text(text))) => return harmless(&text),
        (_, Some(Worth::Number(number))) => number,
    };
    let of_metric = |name: &str| metric(name.rsplit('.').next().unwrap_or(name), number);
    match subject {
        Subject::Metric(name) => of_metric(name),
        Subject::Named(named) if named.metric_of(run).is_some() => of_metric(&named.name),
        Subject::Field(Field::Duration) => seconds(number),
        Subject::Field(Field::Age) => ago(run.started, now),
        Subject::Field(Field::Started | Field::Ended) => dates::show(number),
        Subject::Field(Field::Bytes) => crate::view::bytes(number as u64),
        Subject::Field(_) => count(number as u64),
        _ => number.to_string(),
    }
}

/// How long ago something was.
pub(in crate::command) fn ago(time: Option<f64>, now: f64) -> String {
    let Some(time) = time else {
        return String::new();
    };
    match now - time {
        past if past < 1.0 => "now".to_owned(),
        past if past < 100.0 => format!("{past:.0} s ago"),
        past if past < 2.0 * 3600.0 => format!("{:.0} min ago", past / 60.0),
        past if past < 2.0 * 86_400.0 => format!("{:.0} h ago", past / 3600.0),
        past if past < 60.0 * 86_400.0 => format!("{:.0} days ago", past / 86_400.0),
        _ => dates::show(time)[..10].to_owned(),
    }
}

/// How a run is, in the colour that it should be seen in.
pub(in crate::command) fn state(state: State) -> String {
    let word = style(state.word());
    let word = match state {
        State::Running => word.cyan(),
        State::Succeeded => word.green(),
        State::Interrupted => word.yellow(),
        State::Failed | State::Lost => word.red(),
    };
    word.to_string()
}

/// What a run counts. Its parameters must have been asked for.
pub(super) fn unit(run: &Run) -> &'static str {
    match run.params.contains_key(ROUNDS) {
        true => "round",
        false => "epoch",
    }
}

/// How many epochs are trained, of how many.
pub(super) fn epochs(run: &Run) -> String {
    match (run.epochs_done, run.epochs) {
        (0, 0) => String::new(),
        (done, all) if done == all || all == 0 => done.to_string(),
        (done, all) => format!("{done}/{all}"),
    }
}

/// Tags as they are given.
pub(super) fn tags(tags: &BTreeMap<String, String>) -> String {
    let one = |(key, value): (&String, &String)| match value.as_str() {
        "" => harmless(key),
        value => format!("{}={}", harmless(key), harmless(value)),
    };
    tags.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// A run for programs.
pub(in crate::command) fn json(run: &Run, now: f64) -> Map<String, Value> {
    let object = json!({
        "run": run.name,
        "run_name": run.run_name,
        "job": run.job,
        "status": run.state,
        "started": run.started,
        "ended": run.ended,
        "duration_s": run.duration(now),
        "workers": run.workers,
        "lanes": run.lanes,
        "epochs": run.epochs_done,
        "epochs_planned": run.epochs,
        "steps": run.step,
        "parameters": run.parameters,
        "restarts": run.restarts,
        "resumes": run.resumes,
        "best_epoch": run.best_epoch,
        "samples_per_s": run.samples_per_s,
        "metrics": run.metrics,
        "params": run.params,
        "tags": run.tags,
        "note": run.note,
        "data": run.data,
        "commit": run.commit,
        "host": run.host,
        "user": run.user,
        "weights_sha256": run.weights_sha256,
        "error": run.error,
        "bytes": run.bytes,
    });
    match object {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// Rows as CSV.
pub(super) fn csv(head: &[String], rows: &[Vec<String>]) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(head)?;
    for row in rows {
        writer.write_record(row)?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}
