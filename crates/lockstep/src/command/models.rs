//! `lockstep models`: names for what runs learned.

use super::runs::row::ago;
use super::runs::store::{Store, store_place};
use super::{check_terminal, confirmed, print, print_json};
use crate::args::{AliasArgs, ModelsCommand, RegisterArgs, StoreArgs};
use crate::tracking::export;
use crate::view::{Frame, Table, bytes, harmless, lines_of, metric, plural};
use anyhow::{Context, bail};
use console::style;
use lockstep_events::Recorded;
use lockstep_index::{State, dates};
use lockstep_runs::registry::{Model, Pick, Reference, Registry, Version};
use lockstep_track::mlflow::registered_files;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// Metrics of a version that a table has room for.
const METRICS: usize = 3;

pub(crate) fn run(command: &ModelsCommand) -> anyhow::Result<ExitCode> {
    match command {
        ModelsCommand::List { store, json } => list(store, *json)?,
        ModelsCommand::Show { model, store, json } => show(model, store, *json)?,
        ModelsCommand::Register(args) => register(args)?,
        ModelsCommand::Promote(args) => point(&args.store, &args.model, &args.alias)?,
        ModelsCommand::Alias(args) => alias(args)?,
        ModelsCommand::Rm { model, store, yes } => return remove(model, store, *yes),
    }
    Ok(ExitCode::SUCCESS)
}

fn open(args: &StoreArgs) -> anyhow::Result<Registry> {
    Ok(Registry::of(&store_place(args)?)?)
}

fn list(args: &StoreArgs, json: bool) -> anyhow::Result<()> {
    let models = open(args)?.models()?;
    if json {
        return print_json(&models);
    }
    if models.is_empty() {
        let said = "no models in {} yet; `lockstep models register NAME RUN` makes one\n";
        return Ok(print(said.replace("{}", &args.store))?);
    }
    let now = Recorded::clock();
    let titles = ["model", ">versions", ">newest", "made", "aliases"];
    let row = |model: &Model| {
        let newest = model.versions.last();
        let aliases = model.aliases.iter();
        let aliases: Vec<String> = aliases.map(|(alias, to)| format!("{alias}={to}")).collect();
        vec![
            model.name.clone(),
            model.versions.len().to_string(),
            newest.map_or(String::new(), |version| version.number.to_string()),
            ago(newest.map(|version| version.created), now),
            aliases.join(" "),
        ]
    };
    let rows: Vec<_> = models.iter().map(row).collect();
    Ok(print(lines_of(&titles, &rows))?)
}

fn show(given: &str, args: &StoreArgs, json: bool) -> anyhow::Result<()> {
    let registry = open(args)?;
    let reference: Reference = given.parse()?;
    let model = registry.model(&reference.name)?;
    if reference.pick == Pick::Newest && !given.contains('@') {
        if json {
            return print_json(&model);
        }
        return Ok(print(versions(&model))?);
    }
    let version = model.pick(&reference.pick)?;
    if json {
        return print_json(version);
    }
    Ok(print(one(&model, version))?)
}

/// All versions of a model, the newest first.
fn versions(model: &Model) -> String {
    let now = Recorded::clock();
    let mut names: Vec<&String> = Vec::new();
    for version in model.versions.iter().rev() {
        for name in version.lineage.metrics.keys() {
            // What weights are worth is what they do on data that they have not seen.
            if names.len() < METRICS && !name.starts_with("train.") && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let mut titles = [">version", "aliases", "made"].map(str::to_owned).to_vec();
    titles.extend(names.iter().map(|name| format!(">{name}")));
    titles.push("run".to_owned());
    let row = |version: &Version| {
        let mut row = vec![
            version.number.to_string(),
            model.aliases_of(version.number).join(" "),
            ago(Some(version.created), now),
        ];
        row.extend(names.iter().map(|name| {
            let value = version.lineage.metrics.get(*name);
            value.map_or(String::new(), |value| shown_metric(name, *value))
        }));
        row.push(version.lineage.run.clone());
        row
    };
    let rows: Vec<_> = model.versions.iter().rev().map(row).collect();
    format!(
        "{}\n{}",
        style(&model.name).bold(),
        lines_of(&titles, &rows)
    )
}

fn shown_metric(name: &str, value: f64) -> String {
    metric(name.rsplit('.').next().unwrap_or(name), value)
}

/// One version with where it comes from.
fn one(model: &Model, version: &Version) -> String {
    let lineage = &version.lineage;
    let mut pairs = vec![
        (
            "made".to_owned(),
            format!("{} UTC", dates::show(version.created)),
        ),
        ("run".to_owned(), lineage.run.clone()),
        (
            "job".to_owned(),
            format!("{}  {}", lineage.job, lineage.job_sha256),
        ),
        ("weights".to_owned(), lineage.weights_sha256.clone()),
        (
            "commit".to_owned(),
            lineage.commit.clone().unwrap_or_default(),
        ),
        ("size".to_owned(), bytes(version.bytes)),
        ("note".to_owned(), harmless(&version.note)),
        (
            "aliases".to_owned(),
            model.aliases_of(version.number).join(" "),
        ),
    ];
    for set in lineage.data.as_array().into_iter().flatten() {
        let of = |key: &str| {
            set.get(key)
                .and_then(|value| value.as_str())
                .unwrap_or_default()
        };
        let words = format!("{}  {}", of("name"), of("sha256"));
        pairs.push((format!("data.{}", of("set")), harmless(&words)));
    }
    for (name, value) in &lineage.metrics {
        pairs.push((name.clone(), shown_metric(name, *value)));
    }
    pairs.retain(|(_, value)| !value.trim().is_empty());
    let frame = match io::stdout().is_terminal() {
        true => Frame::Rounded,
        false => Frame::Bare,
    };
    let table = Table::for_pairs(&pairs, frame, 120).pairs(&pairs);
    let name = format!("{}@{}", model.name, version.number);
    format!("{}\n{}\n", style(name).bold(), table.join("\n"))
}

fn register(args: &RegisterArgs) -> anyhow::Result<()> {
    let mut store = Store::holding(&args.store, std::slice::from_ref(&args.run))?;
    let name = store.find(&args.run)?;
    let details = store.ask(|index| index.details(&name))?;
    let details = details.with_context(|| format!("{name} was removed in this moment"))?;
    if details.run.state == State::Running {
        bail!("{name} goes on; what it learns is not done yet");
    }
    let registry = Registry::of(&store.place)?;
    let run = store.run(&name)?;
    let lineage = details.lineage(&run)?;
    let for_mlflow = registered_files(&run, export)?;
    let version = registry.register(&args.name, &run, lineage, &args.note, for_mlflow)?;
    if let Some(alias) = &args.alias {
        registry.point(&args.name, alias, Some(version.number))?;
    }
    if args.json {
        return print_json(&version);
    }
    let alias = args
        .alias
        .as_ref()
        .map_or(String::new(), |alias| format!(", now `{alias}`"));
    let (number, size) = (version.number, bytes(version.bytes));
    Ok(print(format!(
        "{}@{number} is {name}, {size}{alias}\n",
        args.name
    ))?)
}

fn alias(args: &AliasArgs) -> anyhow::Result<()> {
    if !args.remove {
        return point(&args.store, &args.model, &args.alias);
    }
    let reference: Reference = args.model.parse()?;
    open(&args.store)?.point(&reference.name, &args.alias, None)?;
    let name = reference.name;
    Ok(print(format!("{name}@{} is no longer\n", args.alias))?)
}

fn point(store: &StoreArgs, given: &str, alias: &str) -> anyhow::Result<()> {
    let registry = open(store)?;
    let version = registry.find(&given.parse()?)?;
    let before = registry.point(&version.name, alias, Some(version.number))?;
    let before = match before {
        Some(before) if before == version.number => ", as it was".to_owned(),
        Some(before) => format!(", it was version {before}"),
        None => String::new(),
    };
    let (name, number) = (version.name, version.number);
    Ok(print(format!(
        "{name}@{alias} is version {number} now{before}\n"
    ))?)
}

fn remove(given: &str, store: &StoreArgs, yes: bool) -> anyhow::Result<ExitCode> {
    let registry = open(store)?;
    let reference: Reference = given.parse()?;
    let model = registry.model(&reference.name)?;
    let versions: Vec<&Version> = match given.contains('@') {
        true => vec![model.pick(&reference.pick)?],
        false => model.versions.iter().collect(),
    };
    let what = match versions[..] {
        [one] => format!("{}@{}", model.name, one.number),
        _ => format!("{} of {}", plural(versions.len(), "version"), model.name),
    };
    if !yes {
        check_terminal(&what)?;
        if !confirmed(&what)? {
            print("nothing was removed\n")?;
            return Ok(ExitCode::FAILURE);
        }
    }
    for version in versions {
        registry.remove(&model.name, version.number)?;
    }
    print(format!("removed {what}\n"))?;
    Ok(ExitCode::SUCCESS)
}
