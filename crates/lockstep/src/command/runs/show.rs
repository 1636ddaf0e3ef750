//! `lockstep runs show`: all that is known of a run.

use super::row;
use super::store::Store;
use crate::args::ShowRunArgs;
use crate::command::{print, print_json};
use crate::view::chart;
use crate::view::{Frame, Table, bytes, count, harmless, metric, plural, seconds};
use console::{Term, style};
use lockstep_index::{Details, Kind, Run, Series, dates};
use lockstep_measure::chart::Curve;
use serde_json::{Map, Value};
use std::io::IsTerminal;

/// Rows of a curve.
const ROWS: usize = 8;
/// The width where there is no terminal.
const WIDTH: usize = 100;
/// Files that are listed; of more, only how many.
const FILES: usize = 12;

pub(super) fn run(args: &ShowRunArgs) -> anyhow::Result<()> {
    let mut store = Store::holding(&args.store, std::slice::from_ref(&args.run))?;
    let name = store.find(&args.run)?;
    let details = store.ask(|index| index.details(&name))?;
    let Some(details) = details else {
        anyhow::bail!("{name} was removed in this moment");
    };
    if args.json {
        let object = json(&details, store.now);
        return print_json(&object);
    }
    let series = store.ask(|index| index.series(&name, |_, _| true))?;
    let place = store.run(&name)?.place().to_string();
    Ok(print(text(&details, &series, &place, store.now))?)
}

fn json(details: &Details, now: f64) -> Map<String, Value> {
    let mut object = row::json(&details.run, now);
    let mut set = |key: &str, value: Value| drop(object.insert(key.to_owned(), value));
    set("origin", details.origin.clone().unwrap_or_default());
    set("result", details.result.clone().unwrap_or_default());
    set(
        "artifacts",
        serde_json::to_value(&details.artifacts).unwrap_or_default(),
    );
    let series = details.series.iter().map(
        |(kind, name, points)| serde_json::json!({ "kind": kind, "name": name, "points": points }),
    );
    set("series", series.collect());
    object
}

fn text(details: &Details, series: &[Series], place: &str, now: f64) -> String {
    let run = &details.run;
    let mut text = format!("{}  {}\n", style(&run.name).bold(), row::state(run.state));
    if let Some(error) = &run.error {
        text += &format!("{}\n", style(harmless(error)).red());
    }
    if !run.note.is_empty() {
        text += &format!("{}\n", harmless(&run.note));
    }
    let mut sections = vec![("", summary(run, place, now))];
    let metrics = run.metrics.iter();
    let metrics = metrics.map(|(name, value)| {
        (
            name.clone(),
            metric(name.rsplit('.').next().unwrap_or(name), *value),
        )
    });
    sections.push(("metrics", metrics.collect()));
    sections.push(("data", data(run)));
    sections.push(("parameters", params(run)));
    sections.push(("workers", workers(series)));
    sections.push(("origin", origin(details)));
    sections.push(("files", files(details)));
    let (frame, width) = frame();
    for (title, pairs) in sections {
        if pairs.is_empty() {
            continue;
        }
        text.push('\n');
        if !title.is_empty() {
            text += &format!("{}\n", style(title).bold());
        }
        for line in Table::for_pairs(&pairs, frame, width).pairs(&pairs) {
            text += &format!("{line}\n");
        }
    }
    for name in curves(run, series) {
        let Some(series) = series
            .iter()
            .find(|s| s.kind == Kind::Metric && s.name == name)
        else {
            continue;
        };
        let points = series
            .points
            .iter()
            .map(|point| (point.step as f64, point.value));
        let curve = Curve::new(&name, points.collect());
        let coloured = console::colors_enabled();
        let lines = chart::lines(&[curve], width.min(WIDTH), ROWS, coloured);
        text += &format!("\n{} by step\n{}\n", style(&name).bold(), lines.join("\n"));
    }
    text
}

/// What surrounds tables, and how wide they may be.
pub(super) fn frame() -> (Frame, usize) {
    match std::io::stdout().is_terminal() {
        true => (Frame::Rounded, usize::from(Term::stdout().size().1)),
        false => (Frame::Bare, usize::MAX / 2),
    }
}

fn summary(run: &Run, place: &str, now: f64) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut add = |key: &str, value: String| {
        if !value.is_empty() {
            pairs.push((key.to_owned(), value));
        }
    };
    add("called", harmless(&run.run_name));
    add("job", run.job.clone());
    let time = |time: f64| format!("{} UTC ({})", dates::show(time), row::ago(Some(time), now));
    add("started", run.started.map(time).unwrap_or_default());
    add("ended", run.ended.map(time).unwrap_or_default());
    add("took", run.duration(now).map(seconds).unwrap_or_default());
    let unit = row::unit(run);
    add(&format!("{unit}s"), row::epochs(run));
    add(
        "steps",
        // A round of trees is one step.
        if run.step > 0 && unit == "epoch" {
            count(run.step)
        } else {
            String::new()
        },
    );
    add(
        &format!("best {unit}"),
        run.best_epoch
            .map(|epoch| epoch.to_string())
            .unwrap_or_default(),
    );
    let workers = plural(run.workers as usize, "worker");
    add(
        "workers",
        format!("{workers}, {}", plural(run.lanes as usize, "lane")),
    );
    add(
        "learned",
        match run.parameters {
            0 => String::new(),
            number => format!("{} numbers", count(number)),
        },
    );
    add(
        "speed",
        run.samples_per_s
            .map(|rate| format!("{} samples/s", count(rate as u64)))
            .unwrap_or_default(),
    );
    let times = |number: u64| match number {
        0 => String::new(),
        1 => "once".to_owned(),
        number => format!("{number} times"),
    };
    add("restarted", times(run.restarts));
    add("resumed", times(run.resumes));
    add("weights", run.weights_sha256.clone().unwrap_or_default());
    add("tags", row::tags(&run.tags));
    add("folder", format!("{place} ({})", bytes(run.bytes)));
    pairs
}

fn data(run: &Run) -> Vec<(String, String)> {
    let one = |set: &lockstep_index::UsedSet| {
        let hash = set.sha256.get(..12).unwrap_or(&set.sha256);
        let words = format!("{}  {}  {hash}", set.name, plural(set.samples, "sample"));
        (set.set.clone(), harmless(&words))
    };
    run.data.iter().map(one).collect()
}

/// A parameter as a job file has it, without quotation marks.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => harmless(text),
        other => harmless(&other.to_string()),
    }
}

fn params(run: &Run) -> Vec<(String, String)> {
    let one = |(key, value): (&String, &Value)| (harmless(key), shown(value));
    run.params.iter().map(one).collect()
}

/// What each worker took of its machine, on average.
fn workers(series: &[Series]) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for rank in 0.. {
        let mean = |what: &str| {
            let name = format!("worker.{rank}.{what}");
            let found = series
                .iter()
                .find(|s| s.kind == Kind::System && s.name == name)?;
            let sum: f64 = found.points.iter().map(|point| point.value).sum();
            Some(sum / found.points.len().max(1) as f64)
        };
        let Some(cpu) = mean("cpu_percent") else {
            break;
        };
        let mut words = vec![format!("{cpu:.0} % of a core")];
        words.extend(mean("memory_bytes").map(|memory| bytes(memory as u64)));
        words.extend(mean("samples_per_s").map(|rate| format!("{} samples/s", count(rate as u64))));
        words.extend(mean("waiting").map(|share| format!("{:.0} % waiting", share * 100.0)));
        pairs.push((format!("worker {rank}"), words.join(", ")));
    }
    pairs
}

fn origin(details: &Details) -> Vec<(String, String)> {
    fn flatten(path: String, value: &Value, pairs: &mut Vec<(String, String)>) {
        match value {
            Value::Object(inner) => {
                for (key, value) in inner {
                    let path = match path.as_str() {
                        "" => key.clone(),
                        path => format!("{path}.{key}"),
                    };
                    flatten(path, value, pairs);
                }
            }
            Value::Null => {}
            Value::Array(items) => {
                let words: Vec<String> = items.iter().map(shown).collect();
                pairs.push((harmless(&path), words.join(" ")));
            }
            value => pairs.push((harmless(&path), shown(value))),
        }
    }
    let mut pairs = Vec::new();
    if let Some(origin) = &details.origin {
        flatten(String::new(), origin, &mut pairs);
    }
    pairs
}

fn files(details: &Details) -> Vec<(String, String)> {
    // The largest say most; they are listed by name.
    let mut largest: Vec<_> = details.artifacts.iter().collect();
    largest.sort_by_key(|file| std::cmp::Reverse(file.size));
    largest.truncate(FILES);
    largest.sort_by(|a, b| a.path.cmp(&b.path));
    let one = |file: &&lockstep_index::Artifact| (harmless(&file.path), bytes(file.size));
    let mut pairs: Vec<(String, String)> = largest.iter().map(one).collect();
    let more = details.artifacts.len() - largest.len();
    if more > 0 {
        let size: u64 = details.artifacts.iter().map(|file| file.size).sum();
        pairs.push((
            format!("and {more} more"),
            format!("{} in all", bytes(size)),
        ));
    }
    pairs
}

/// The curves that say most of a run: what it minimises, by step, and what it is measured by on validation or test
/// data.
fn curves(run: &Run, series: &[Series]) -> Vec<String> {
    let first = run.measured.first().map_or("loss", String::as_str);
    let last = run.measured.get(1).map_or(first, String::as_str);
    let mut names = vec![first.to_owned()];
    names.extend(["val", "test"].map(|set| format!("{set}.{last}")));
    let has = |name: &String| {
        let mut all = series.iter();
        all.any(|s| s.kind == Kind::Metric && s.name == *name && s.points.len() > 1)
    };
    names.retain(has);
    names.truncate(2);
    if names.is_empty() {
        let metrics = series
            .iter()
            .filter(|s| s.kind == Kind::Metric && s.points.len() > 1);
        names.extend(metrics.map(|s| s.name.clone()).take(2));
    }
    names
}
