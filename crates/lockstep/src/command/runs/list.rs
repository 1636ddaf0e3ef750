//! `lockstep runs list`: the runs of a store, chosen and sorted.

use super::row;
use super::store::Store;
use crate::args::ListArgs;
use crate::command::{print, print_json};
use crate::view::{ROUNDS, harmless, lines_of, plural, seconds};
use lockstep_index::filter::{Field, Names, Subject, Worth, sort_by, worth};
use lockstep_index::{Keys, Run};

/// Metrics that are shown if none are asked for.
const METRICS: usize = 3;

/// A column that was asked for.
pub(super) struct Shown {
    pub(super) title: String,
    pub(super) subject: Subject,
}

pub(super) fn run(args: &ListArgs) -> anyhow::Result<()> {
    let mut store = Store::open(&args.store)?;
    let names = store.names()?;
    let sort = args
        .sort
        .as_deref()
        .map(|name| subject(&names, name))
        .transpose()?;
    let mut columns = Vec::new();
    for name in &args.columns {
        columns.push(Shown {
            title: name.clone(),
            subject: subject(&names, name)?,
        });
    }
    let keys = match args.form.json || args.form.csv {
        true => Keys::All,
        false => {
            let subjects = columns.iter().map(|shown| &shown.subject).chain(&sort);
            let asked = subjects.flat_map(Subject::keys).cloned();
            Keys::Some(asked.chain([ROUNDS.to_owned()]).collect())
        }
    };
    let mut runs = store.choose(args.filter.as_deref(), &names, keys)?;
    for subject in columns.iter().map(|shown| &shown.subject).chain(&sort) {
        subject.check(&runs).map_err(wrong_name)?;
    }
    let all = runs.len();
    if let Some(subject) = &sort {
        sort_by(&mut runs, subject, args.ascending, store.now);
    } else if args.ascending {
        runs.reverse();
    }
    runs.truncate(args.limit.unwrap_or(usize::MAX));
    if args.form.json {
        let rows: Vec<_> = runs.iter().map(|run| row::json(run, store.now)).collect();
        return print_json(&rows);
    }
    if args.form.csv {
        return as_csv(&runs, &columns, store.now);
    }
    if runs.is_empty() {
        let said = match (&args.filter, names.params.is_empty()) {
            (Some(_), false) => format!("no run in {} is like that\n", store.name()),
            _ => format!(
                "no runs in {} yet; `lockstep run job.toml` makes one\n",
                store.name()
            ),
        };
        return Ok(print(said)?);
    }
    if columns.is_empty() {
        columns = usual(&runs);
    }
    let mut text = table(&runs, &columns, store.now);
    if runs.len() < all {
        text += &format!("{} of {}\n", runs.len(), plural(all, "run"));
    }
    Ok(print(text)?)
}

/// What a name means that was given outside of a filter.
pub(super) fn subject(names: &Names, name: &str) -> Result<Subject, anyhow::Error> {
    // Where there are no runs, nothing has a name.
    if names.params.is_empty() {
        return Ok(Subject::Metric(name.to_owned()));
    }
    names.find(name).map_err(wrong_name)
}

fn wrong_name((message, label): (String, String)) -> anyhow::Error {
    anyhow::anyhow!("{message}; {label}")
}

/// The metrics that most runs are measured by.
fn usual(runs: &[Run]) -> Vec<Shown> {
    let mut names: Vec<(&str, usize)> = Vec::new();
    for run in runs {
        for name in &run.measured {
            let is_known = run.metric(name).is_some();
            match names.iter_mut().find(|(known, _)| known == name) {
                Some((_, count)) => *count += usize::from(is_known),
                None if is_known => names.push((name, 1)),
                None => {}
            }
        }
    }
    // A script's metrics have no order but that of their names.
    if names.is_empty() {
        for run in runs {
            for name in run.metrics.keys() {
                if !names.iter().any(|(known, _)| known == name) {
                    names.push((name, 1));
                }
            }
        }
    }
    names.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let shown = names.into_iter().take(METRICS).map(|(name, _)| Shown {
        title: name.to_owned(),
        subject: Subject::Metric(name.to_owned()),
    });
    shown.collect()
}

/// A table of runs with these columns.
pub(super) fn table(runs: &[Run], columns: &[Shown], now: f64) -> String {
    let has_tags = runs.iter().any(|run| !run.tags.is_empty());
    let has_epochs = runs.iter().any(|run| run.epochs > 0);
    let has_names = runs.iter().any(|run| !run.run_name.is_empty());
    let mut titles = vec!["run".to_owned()];
    if has_names {
        titles.push("called".to_owned());
    }
    titles.extend(["status", "started", ">took"].map(str::to_owned));
    if has_epochs {
        let trees = runs.iter().filter(|run| row::unit(run) == "round").count();
        titles.push(match trees {
            0 => ">epochs".to_owned(),
            all if all == runs.len() => ">rounds".to_owned(),
            _ => ">epochs or rounds".to_owned(),
        });
    }
    titles.extend(columns.iter().map(|shown| match &shown.subject {
        Subject::Tag(_) | Subject::Field(Field::Error | Field::Note | Field::RunName) => {
            shown.title.clone()
        }
        _ => format!(">{}", shown.title),
    }));
    if has_tags {
        titles.push("tags".to_owned());
    }
    let rows: Vec<Vec<String>> = runs
        .iter()
        .map(|run| {
            let mut cells = vec![run.name.clone()];
            if has_names {
                cells.push(harmless(&run.run_name));
            }
            cells.extend([
                row::state(run.state),
                row::ago(run.started, now),
                run.duration(now).map(seconds).unwrap_or_default(),
            ]);
            if has_epochs {
                cells.push(row::epochs(run));
            }
            cells.extend(
                columns
                    .iter()
                    .map(|shown| row::cell(&shown.subject, run, now)),
            );
            if has_tags {
                cells.push(row::tags(&run.tags));
            }
            cells
        })
        .collect();
    lines_of(&titles, &rows)
}

/// A row a run: what every run has, then metrics, parameters and tags, or the columns that were asked for.
fn as_csv(runs: &[Run], columns: &[Shown], now: f64) -> anyhow::Result<()> {
    let plain = |subject: &Subject, run: &Run| match worth(subject, run, now) {
        None => String::new(),
        Some(Worth::Text(text)) => text,
        Some(Worth::Number(number)) => number.to_string(),
    };
    let fixed = [
        ("run", Field::Name),
        ("job", Field::Job),
        ("status", Field::Status),
        ("started", Field::Started),
        ("ended", Field::Ended),
        ("duration_s", Field::Duration),
        ("workers", Field::Workers),
        ("epochs", Field::Epochs),
        ("steps", Field::Steps),
        ("restarts", Field::Restarts),
        ("run_name", Field::RunName),
    ];
    let mut shown: Vec<Shown> = fixed
        .into_iter()
        .map(|(title, field)| Shown {
            title: title.to_owned(),
            subject: Subject::Field(field),
        })
        .collect();
    if columns.is_empty() {
        let mut add = |names: Vec<&String>, prefix: &str, make: fn(String) -> Subject| {
            let mut names = names;
            names.sort();
            names.dedup();
            shown.extend(names.into_iter().map(|name| Shown {
                title: format!("{prefix}{name}"),
                subject: make(name.clone()),
            }));
        };
        let all = |of: fn(&Run) -> Vec<&String>| runs.iter().flat_map(of).collect();
        add(
            all(|run| run.metrics.keys().collect()),
            "metric.",
            Subject::Metric,
        );
        add(
            all(|run| run.params.keys().collect()),
            "param.",
            Subject::Param,
        );
        add(all(|run| run.tags.keys().collect()), "tag.", Subject::Tag);
    } else {
        shown.extend(columns.iter().map(|column| Shown {
            title: column.title.clone(),
            subject: column.subject.clone(),
        }));
    }
    let head: Vec<String> = shown.iter().map(|shown| shown.title.clone()).collect();
    let rows: Vec<Vec<String>> = runs
        .iter()
        .map(|run| {
            shown
                .iter()
                .map(|shown| plain(&shown.subject, run))
                .collect()
        })
        .collect();
    Ok(print(row::csv(&head, &rows)?)?)
}
