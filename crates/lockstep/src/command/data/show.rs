//! `lockstep data show`: what a set holds, as training would read it.

use crate::args::DataShowArgs;
use crate::view::{self, Frame, Table, count, plural};
use anyhow::{Context, bail};
use lockstep_base::fs::CacheDir;
use lockstep_data::{ColumnKind, Dataset, Source, TableColumn, TargetKind};
use lockstep_job::{DataRef, Job, Label, Override};
use lockstep_resolve::ResolvedJob;
use serde_json::{Value, json};
use std::path::Path;

/// A job whose data alone are looked at.
const JOB_FILE: &str = "show.toml";
const JOB: &str = "name = 'show'\n[data]\ntrain = 'x.csv'\n[model]\nkind = 'mlp'\nhidden = [1]\n\
                   [train]\nepochs = 1\nbatch = 1\noptimizer = { kind = 'sgd' }\n";
/// The most values and classes that people are shown.
const SHOWN: usize = 12;

pub(super) fn run(args: &DataShowArgs) -> anyhow::Result<()> {
    let job = job(args)?;
    let source = Source::Samples {
        source: Box::new(
            ResolvedJob::of(&job, job.network(Path::new(JOB_FILE))?)?
                .sets
                .train,
        ),
        pictures: None,
    };
    let mut tell = |message: &str| crate::command::tell(message);
    let set = Dataset::open_telling(&source, &CacheDir::locate()?, &mut tell)?;
    if let Some(label) = args.label.as_ref().filter(|_| !set.is_labelled()) {
        let table = set.table();
        let there = table.columns.iter().map(|column| &column.column.name);
        let left_out = table.left_out.iter().map(|left| &left.name);
        let names: Vec<String> = there
            .chain(left_out)
            .map(|name| format!("`{name}`"))
            .collect();
        bail!(
            "--label: {} has no column `{label}`; it has {}",
            set.name(),
            names.join(", ")
        );
    }
    crate::command::print(match args.json {
        true => format!("{}\n", in_json(&set)),
        false => in_words(&set),
    })?;
    Ok(())
}

/// The job that trains on what is to be shown.
fn job(args: &DataShowArgs) -> anyhow::Result<Job> {
    let path = Path::new(&args.source);
    let mut overrides = vec![match path.exists() {
        true => Override::text("SOURCE", "data.train", &args.source),
        false => format!("data.train={}", args.source).parse()?,
    }];
    overrides.extend(crate::args::overrides(&args.set)?);
    let here = std::env::current_dir().context("there is no current folder")?;
    let mut job = Job::parse(&here.join(JOB_FILE), JOB, &overrides, None)?;
    if let Some(data) = &mut job.data
        && let (Some(label), DataRef::Csv { columns, .. } | DataRef::Parquet { columns, .. }) =
            (&args.label, &mut data.train)
    {
        columns.label = Label::One(label.clone());
    }
    Ok(job)
}

fn in_words(set: &Dataset) -> String {
    let mut text = format!("{}: {}\n", set.name(), plural(set.len(), "sample"));
    let table = set.table();
    if table.columns.is_empty() {
        let [channels, height, width] = set.shape();
        text += &match (height, width) {
            (1, 1) => format!("{} each\n", plural(channels, "number")),
            _ => format!(
                "{} of {height} x {width} pixels\n",
                plural(channels, "channel")
            ),
        };
    } else {
        let rows: Vec<[String; 4]> = table.columns.iter().map(cells).collect();
        text += &columns(&rows);
    }
    for left in &table.left_out {
        let name = match &left.name[..] {
            "" => "a column without a name",
            name => name,
        };
        text += &format!("{name} is left out: {}\n", left.reason);
    }
    text + &labels(set)
}

fn cells(column: &TableColumn) -> [String; 4] {
    let range = || match (column.smallest, column.largest) {
        (Some(least), Some(most)) => format!("{least} to {most}"),
        _ => String::new(),
    };
    let holds = match &column.column.kind {
        ColumnKind::Number => range(),
        ColumnKind::Boolean => String::new(),
        ColumnKind::Category { values } => {
            let more = if values.len() > SHOWN { ", …" } else { "" };
            let shown = values.iter().take(SHOWN).cloned().collect::<Vec<_>>();
            format!(
                "{}: {}{more}",
                plural(values.len(), "value"),
                shown.join(", ")
            )
        }
        ColumnKind::Date { form, day_first } => {
            let order = if *day_first {
                ", the day before the month"
            } else {
                ""
            };
            format!("{}: {}{order}", range(), form.parts().join(", "))
        }
    };
    let gaps = match column.gaps {
        0 => String::new(),
        gaps => count(gaps),
    };
    let holds: String = holds
        .chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect();
    [
        column.column.name.clone(),
        column.column.kind.word().to_owned(),
        gaps,
        holds.trim_end_matches(": ").to_owned(),
    ]
}

fn columns(rows: &[[String; 4]]) -> String {
    let mut columns = view::columns(&["column", "type", ">gaps", "holds"], rows);
    columns[3].width = columns[3].width.min(100);
    Table::new(columns, Frame::Rounded).filled(rows, |title| title)
}

/// How many samples each class has.
fn counts(set: &Dataset) -> Vec<usize> {
    let mut counts = vec![0; set.classes()];
    for &label in set.labels() {
        counts[label as usize] += 1;
    }
    counts
}

fn labels(set: &Dataset) -> String {
    if !set.is_labelled() {
        return "no labels; --label names their column\n".to_owned();
    }
    if set.target_kind() == TargetKind::Classes {
        let classes = set.class_names().iter().zip(counts(set));
        let each: Vec<String> = classes
            .take(SHOWN)
            .map(|(name, samples)| format!("{name} {}", count(samples as u64)))
            .collect();
        let more = if set.classes() > SHOWN { ", …" } else { "" };
        return format!("{} classes: {}{more}\n", set.classes(), each.join(", "));
    }
    let mut text = String::new();
    for (at, name) in set.output_names().iter().enumerate() {
        let [least, most] = range(set, at);
        text += &format!("to predict: {name}, {least} to {most}\n");
    }
    text
}

/// The smallest and the largest number of what is to be predicted in a column.
fn range(set: &Dataset, column: usize) -> [f32; 2] {
    let numbers = set.numbers().iter().skip(column).step_by(set.outputs());
    numbers.fold([f32::INFINITY, f32::NEG_INFINITY], |[least, most], &y| {
        [least.min(y), most.max(y)]
    })
}

fn in_json(set: &Dataset) -> Value {
    let table = set.table();
    let label = match set.target_kind() {
        _ if !set.is_labelled() => Value::Null,
        TargetKind::Classes => {
            let classes = set.class_names().iter().zip(counts(set));
            let class = |(name, samples)| json!({ "name": name, "samples": samples });
            json!({ "classes": classes.map(class).collect::<Vec<_>>() })
        }
        TargetKind::Numbers | TargetKind::Labels => {
            let column = |(at, name)| {
                let [least, most] = range(set, at);
                json!({ "name": name, "smallest": least, "largest": most })
            };
            let columns = set.output_names().iter().enumerate().map(column);
            json!({ "numbers": columns.collect::<Vec<_>>() })
        }
    };
    json!({
        "source": set.name(),
        "samples": set.len(),
        "shape": set.shape(),
        "columns": table.columns,
        "left_out": table.left_out,
        "label": label,
    })
}
