//! `lockstep runs compare`: runs beside each other.
//!
//! What is compared is gathered once, as a [`Comparison`]; the terminal, the picture, the page and JSON are four
//! renderings of it.

mod html;

use super::row;
use super::show::{frame, shown};
use super::store::Store;
use crate::args::CompareArgs;
use crate::command::print;
use crate::view::chart;
use crate::view::{count, from_here, lines_of, loss, metric, seconds};
use anyhow::{Context, bail};
use console::style;
use lockstep_events::current_name;
use lockstep_index::{Details, Keys, Kind, Run, Series};
use lockstep_measure::chart::{Curve, Picture};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// Rows of a picture in the terminal.
const ROWS: usize = 12;
/// Width of a picture where there is no terminal, and at most.
const WIDTH: usize = 100;
/// Pictures that are drawn if no metric is named.
const PICTURES: usize = 3;
/// Runs that can be told apart in one picture.
const MOST: usize = 26;
/// Points of a curve that a page holds at most: more than its picture has across.
const POINTS: usize = 1000;

/// What a value is called, and what it is in each run.
struct Line {
    name: String,
    values: Vec<String>,
}

/// All that is compared.
struct Comparison {
    runs: Vec<Run>,
    /// Parameters that are not the same in all runs.
    differing: Vec<Line>,
    /// How many are.
    same: usize,
    metrics: Vec<Line>,
    /// Metrics and their curves, one a run that has it, with the number of the run.
    pictures: Vec<Picture>,
}

pub(super) fn run(args: &CompareArgs) -> anyhow::Result<()> {
    let mut store = Store::holding(&args.store, &args.runs)?;
    let names = names(args, &mut store)?;
    let mut details = Vec::new();
    let mut series = Vec::new();
    for name in &names {
        let found = store.ask(|index| index.details(name))?;
        details.push(found.with_context(|| format!("{name} was removed in this moment"))?);
        series.push(store.ask(|index| index.series(name, |kind, _| kind == Kind::Metric))?);
    }
    if args.json {
        let rows: Vec<Value> = details
            .iter()
            .zip(&series)
            .map(|(details, series)| as_json(details, series, store.now))
            .collect();
        return Ok(print(serde_json::to_string(&rows)? + "\n")?);
    }
    let comparison = Comparison::of(details, &series, &args.metric, store.now)?;
    if let Some(path) = &args.svg {
        let names: Vec<&str> = comparison
            .runs
            .iter()
            .map(|run| run.name.as_str())
            .collect();
        write(
            path,
            &lockstep_measure::chart::stacked(&names, &comparison.pictures),
        )?;
    }
    if let Some(path) = &args.html {
        write(path, &html::page(&comparison, &store.name(), store.now))?;
    }
    let mut text = comparison.text();
    for path in [&args.svg, &args.html].into_iter().flatten() {
        text += &format!("\n{}", from_here(path));
    }
    Ok(print(text + "\n")?)
}

fn names(args: &CompareArgs, store: &mut Store) -> anyhow::Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for given in &args.runs {
        let name = store.find(given)?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if let Some(filter) = &args.filter {
        let known = store.names()?;
        let chosen = store.choose(Some(filter), &known, Keys::Some(Vec::new()))?;
        // The oldest first, as they came about.
        names.extend(chosen.into_iter().rev().map(|run| run.name));
    }
    match names.len() {
        0 => bail!("no run in {} is like that", store.name()),
        1 => bail!("{} is the only one: name at least two runs", names[0]),
        number if number > MOST => {
            bail!("{number} runs cannot be told apart; choose at most {MOST}")
        }
        _ => Ok(names),
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    lockstep_base::fs::write_atomic(path, text.as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))
}

fn as_json(details: &Details, series: &[Series], now: f64) -> Value {
    let mut object = row::json(&details.run, now);
    let points = |series: &Series| {
        let points: Vec<_> = series
            .points
            .iter()
            .map(|p| json!([p.step, p.value]))
            .collect();
        (series.name.clone(), Value::Array(points))
    };
    object.insert(
        "series".into(),
        Value::Object(series.iter().map(points).collect()),
    );
    Value::Object(object)
}

impl Comparison {
    fn of(
        details: Vec<Details>,
        series: &[Vec<Series>],
        wanted: &[String],
        now: f64,
    ) -> anyhow::Result<Self> {
        let runs: Vec<Run> = details.into_iter().map(|details| details.run).collect();
        let keys: BTreeSet<&String> = runs.iter().flat_map(|run| run.params.keys()).collect();
        let all = keys.len();
        let line = |key: &String| Line {
            name: key.clone(),
            values: runs
                .iter()
                .map(|run| run.params.get(key).map(shown).unwrap_or_default())
                .collect(),
        };
        let differs = |line: &Line| line.values.iter().any(|value| *value != line.values[0]);
        let differing: Vec<Line> = keys.into_iter().map(line).filter(differs).collect();
        let pictures = pictures(&runs, series, wanted)?;
        Ok(Self {
            same: all - differing.len(),
            metrics: metrics(&runs, now),
            differing,
            pictures,
            runs,
        })
    }

    /// What distinguishes a run in a legend: the end of its name, which is its own.
    fn label(&self, number: usize) -> String {
        let name = &self.runs[number].name;
        let end = name.rsplit('-').next().unwrap_or(name);
        let same = self
            .runs
            .iter()
            .filter(|run| run.name.ends_with(end))
            .count();
        match same {
            1 => end.to_owned(),
            _ => name.clone(),
        }
    }

    fn text(&self) -> String {
        let coloured = console::colors_enabled();
        let head = |number: usize| match coloured {
            true => chart::colour(number)
                .apply_to(self.label(number))
                .to_string(),
            false => format!("{} {}", chart::letter(number), self.label(number)),
        };
        let table = |title: &str, lines: &[Line]| {
            let mut titles = vec![title.to_owned()];
            titles.extend((0..self.runs.len()).map(|number| format!(">{}", head(number))));
            let row = |line: &Line| {
                let mut row = vec![line.name.clone()];
                row.extend(line.values.iter().cloned());
                row
            };
            lines_of(&titles, &lines.iter().map(row).collect::<Vec<_>>())
        };
        let mut text = String::new();
        for (number, run) in self.runs.iter().enumerate() {
            text += &format!("{}  {}\n", head(number), run.name);
        }
        text.push('\n');
        if self.differing.is_empty() {
            text += &format!("all {} parameters are the same\n", self.same);
        } else {
            text += &table("parameter", &self.differing);
            text += &format!("{} more are the same\n", self.same);
        }
        text.push('\n');
        text += &table("result", &self.metrics);
        let width = frame().1.min(WIDTH);
        for picture in &self.pictures {
            // The number of a run is that of its colour, whichever runs have the metric.
            let mut curves: Vec<Curve> = (0..self.runs.len())
                .map(|number| Curve::new(self.label(number), Vec::new()))
                .collect();
            for (number, curve) in &picture.curves {
                curves[*number] = curve.clone();
            }
            let lines = chart::lines(&curves, width, ROWS, coloured);
            text += &format!(
                "\n{} by step\n{}\n",
                style(&picture.name).bold(),
                lines.join("\n")
            );
        }
        text.trim_end().to_owned()
    }
}

fn metrics(runs: &[Run], now: f64) -> Vec<Line> {
    let each = |name: &str, value: &dyn Fn(&Run) -> String| Line {
        name: name.to_owned(),
        values: runs.iter().map(value).collect(),
    };
    let mut lines = vec![
        each("status", &|run| run.state.word().to_owned()),
        each("took", &|run| {
            run.duration(now).map(seconds).unwrap_or_default()
        }),
        each("epochs", &row::epochs),
    ];
    let names: BTreeSet<&String> = runs.iter().flat_map(|run| run.metrics.keys()).collect();
    for name in names {
        let short = name.rsplit('.').next().unwrap_or(name);
        lines.push(each(name, &|run| {
            let value = run.metrics.get(name);
            value.map(|value| metric(short, *value)).unwrap_or_default()
        }));
    }
    lines.retain(|line| line.values.iter().any(|value| !value.is_empty()));
    lines
}

/// The curves of the metrics that were named, or of those that most runs have.
fn pictures(
    runs: &[Run],
    series: &[Vec<Series>],
    wanted: &[String],
) -> anyhow::Result<Vec<Picture>> {
    let known: BTreeSet<&str> = series
        .iter()
        .flatten()
        .map(|series| series.name.as_str())
        .collect();
    let mut names: Vec<String> = Vec::new();
    for given in wanted {
        let places = ["", "val.", "test.", "train."].map(|place| format!("{place}{given}"));
        let mut places = places.into_iter().chain(current_name(given));
        match places.find(|name| known.contains(name.as_str())) {
            Some(name) => names.push(name),
            None => {
                let known: Vec<&str> = known.iter().copied().collect();
                bail!(
                    "no run has a curve `{given}`; there are {}",
                    known.join(", ")
                )
            }
        }
    }
    if wanted.is_empty() {
        names = usual(runs, series);
    }
    let picture = |name: String| {
        let curve = |(number, of_run): (usize, &Vec<Series>)| {
            let series = of_run.iter().find(|series| series.name == name)?;
            let curve = Curve::new(&runs[number].name, thinned(series));
            Some((number, curve))
        };
        Picture {
            curves: series.iter().enumerate().filter_map(curve).collect(),
            name,
            from_zero: false,
            across: |step| count(step.round().max(0.0) as u64),
            down: loss,
        }
    };
    Ok(names.into_iter().map(picture).collect())
}

/// The metrics with more than one point in some run: what is minimised by step, then validation and test.
fn usual(runs: &[Run], series: &[Vec<Series>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let drawn = |name: &String| {
        let mut all = series.iter().flatten();
        all.any(|series| series.name == *name && series.points.len() > 1)
    };
    for run in runs {
        let first = run.measured.first().cloned();
        let others = ["val", "test"]
            .iter()
            .flat_map(|set| run.measured.iter().map(move |name| format!("{set}.{name}")));
        names.extend(first.into_iter().chain(others));
    }
    names.extend(series.iter().flatten().map(|series| series.name.clone()));
    let mut usual: Vec<String> = Vec::new();
    for name in names {
        if usual.len() < PICTURES && !usual.contains(&name) && drawn(&name) {
            usual.push(name);
        }
    }
    usual
}

/// The points of a curve, at most so many that a picture can show: of each stretch the mean.
fn thinned(series: &Series) -> Vec<(f64, f64)> {
    let stretch = series.points.len().div_ceil(POINTS).max(1);
    let mean = |points: &[lockstep_index::Point]| {
        let value: f64 = points.iter().map(|point| point.value).sum();
        let step = points.last().map_or(0, |point| point.step);
        (step as f64, value / points.len() as f64)
    };
    series.points.chunks(stretch).map(mean).collect()
}
