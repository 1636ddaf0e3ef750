//! `lockstep data show`: what a set holds, as training would read it.

use super::photos;
use crate::args::DataShowArgs;
use crate::view::{self, Frame, Table, count, plural};
use anyhow::{Context, bail};
use lockstep_base::fs::CacheDir;
use lockstep_data::{
    ColumnKind, Dataset, PictureSurvey, Source, Suspect, Suspicion, TableColumn, TargetKind,
    suspects,
};
use lockstep_job::{Job, JobTransform, Label, Override};
use lockstep_resolve::{ResolveError, ResolvedJob};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// A job whose data alone are looked at.
const JOB_FILE: &str = "show.toml";
const JOB: &str = "name = 'show'\n[data]\ntrain = 'x.csv'\n[model]\nkind = 'mlp'\nhidden = [1]\n\
                   [train]\nepochs = 1\nbatch = 1\noptimizer = { kind = 'sgd' }\n";
/// The smallest and the largest number of columns, with all their digits.
type ExactRanges = BTreeMap<String, [i128; 2]>;

/// The most values and classes that people are shown.
const SHOWN: usize = 12;

pub(super) fn run(args: &DataShowArgs) -> anyhow::Result<()> {
    let train = source(job(args)?)?;
    if let Source::Pictures(pictures) = &train {
        let survey = PictureSurvey::take(pictures)?;
        let folder = pictures.folder.to_string();
        crate::command::print(match args.json {
            true => photos::in_json(&folder, &survey),
            false => photos::in_words(&folder, &survey),
        })?;
        return Ok(());
    }
    let source = Source::Samples {
        source: Box::new(train.clone()),
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
    let exact = exact_ranges(&train, &set)?;
    let mut flags = suspects(&set);
    for flag in &mut flags {
        // What is the same in single precision need not be.
        let differs = |range: &[i128; 2]| range[0] != range[1];
        if flag.suspicion == Suspicion::Constant && exact.get(&flag.column).is_some_and(differs) {
            flag.suspicion = Suspicion::Id;
        }
    }
    crate::command::print(match args.json {
        true => format!("{}\n", in_json(&set, &exact, &flags)),
        false => in_words(&set, &exact, &flags),
    })?;
    Ok(())
}

/// Where the samples come from that the job trains on.
fn source(mut job: Job) -> anyhow::Result<Source> {
    let resolve = |job: &Job| -> anyhow::Result<Result<ResolvedJob, ResolveError>> {
        Ok(ResolvedJob::of(job, job.network(Path::new(JOB_FILE))?))
    };
    let mut resolved = resolve(&job)?;
    if let (Err(ResolveError::NoTransform), Some(data)) = (&resolved, &mut job.data) {
        // Photos are shown in all sizes that they have.
        data.transform = Some(JobTransform {
            resize: Some(1),
            ..JobTransform::default()
        });
        resolved = resolve(&job)?;
    }
    Ok(resolved?.sets.train)
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
        && let (Some(label), Some(columns)) = (&args.label, data.train.columns_mut())
    {
        columns.label = Label::One(label.clone());
    }
    Ok(job)
}

/// The smallest and the largest number of columns by their names, where those are whole and have more digits than a sample
/// keeps.
fn exact_ranges(source: &Source, set: &Dataset) -> anyhow::Result<ExactRanges> {
    /// Up to here, single precision has all whole numbers.
    const EXACT: f32 = 16_777_216.0;
    let large = |column: &&TableColumn| {
        let ends = [column.smallest, column.largest];
        let is_large = ends.iter().flatten().any(|end| end.abs() >= EXACT);
        column.column.kind == ColumnKind::Number && is_large
    };
    let columns = set.table().columns.iter().filter(large);
    let names: Vec<String> = columns.map(|column| column.column.name.clone()).collect();
    let Source::Table(table) = source else {
        return Ok(ExactRanges::new());
    };
    if names.is_empty() {
        return Ok(ExactRanges::new());
    }
    let numbers = table.whole_numbers(&names)?.into_iter();
    let ranges = numbers.map(|numbers| numbers.and_then(|numbers| numbers.range));
    let ranges = names.into_iter().zip(ranges);
    Ok(ranges
        .filter_map(|(name, range)| Some((name, range?)))
        .collect())
}

/// What a person is told of a column to look at.
fn in_a_sentence(flag: &Suspect) -> String {
    let name = &flag.column;
    match flag.suspicion {
        Suspicion::Id => format!(
            "{name} looks like an id: every row has another number. A model can only learn it by heart; `drop = \
             [\"{name}\"]` leaves it out\n"
        ),
        Suspicion::Constant => format!(
            "{name} is the same in all rows: nothing can be learned from it; `drop = [\"{name}\"]` leaves it out\n"
        ),
        Suspicion::Leak => format!(
            "{name} tells the label by itself. If it is not known before the label is, leave it out: `drop = \
             [\"{name}\"]`\n"
        ),
    }
}

fn in_words(set: &Dataset, exact: &ExactRanges, flags: &[Suspect]) -> String {
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
        let cells = |column: &TableColumn| cells(column, exact.get(&column.column.name));
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
    text += &flags.iter().map(in_a_sentence).collect::<String>();
    text + &labels(set)
}

fn cells(column: &TableColumn, exact: Option<&[i128; 2]>) -> [String; 4] {
    let range = || match (column.smallest, column.largest) {
        (Some(least), Some(most)) if exact.is_none() => format!("{least} to {most}"),
        _ => exact.map_or(String::new(), |[least, most]| format!("{least} to {most}")),
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

fn in_json(set: &Dataset, exact: &ExactRanges, flags: &[Suspect]) -> Value {
    let table = set.table();
    let mut columns = json!(table.columns);
    for column in columns.as_array_mut().into_iter().flatten() {
        let range = column["name"].as_str().and_then(|name| exact.get(name));
        // JSON here has whole numbers of 64 bits.
        if let Some([Ok(least), Ok(most)]) = range.map(|range| range.map(i64::try_from)) {
            column["smallest"] = json!(least);
            column["largest"] = json!(most);
        }
    }
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
        "columns": columns,
        "flags": flags,
        "left_out": table.left_out,
        "label": label,
    })
}
