//! `lockstep runs rm`, and what `run.keep` removes when a run has ended.

use super::row;
use super::store::Store;
use crate::args::RmArgs;
use crate::command::print;
use crate::view::{Column, bytes, lines_of, plural};
use anyhow::{Context, bail};
use lockstep_index::keep::{self, Rules};
use lockstep_index::{Index, Keys, Run, State};
use lockstep_job::Keep;
use lockstep_runs::RunDir;
use lockstep_runs::registry::Registry;
use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;

pub(super) fn run(args: &RmArgs) -> anyhow::Result<ExitCode> {
    let mut store = Store::open(&args.store)?;
    let registered = Registry::of(&store.place)?.by_run()?;
    let mut runs = chosen(args, &mut store)?;
    let named = !args.runs.is_empty();
    let mut kept = Vec::new();
    runs.retain(|run| {
        let why = match (run.state, registered.get(&run.name)) {
            (State::Running, _) => "it goes on; stop it first".to_owned(),
            (_, Some(versions)) => format!(
                "{} was made from it; `lockstep models rm` comes first",
                versions.join(", ")
            ),
            _ => return true,
        };
        kept.push(format!("{} is not removed: {why}", run.name));
        false
    });
    // Who named a run wants that one to go, or to know why it does not.
    if named && !kept.is_empty() {
        bail!("{}", kept.join("\n"));
    }
    for why in &kept {
        eprintln!("note: {why}");
    }
    if runs.is_empty() {
        print("nothing to remove\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    if !args.yes && !agreed(&runs, store.now)? {
        print("nothing was removed\n")?;
        return Ok(ExitCode::FAILURE);
    }
    let size: u64 = runs.iter().map(|run| run.bytes).sum();
    for run in &runs {
        let folder = store.run(&run.name)?;
        remove(&folder).with_context(|| format!("cannot remove {}", run.name))?;
    }
    let names: Vec<String> = runs.iter().map(|run| run.name.clone()).collect();
    store.ask(|index| index.forget(&names))?;
    let number = plural(runs.len(), "run");
    print(format!("removed {number}, {}\n", bytes(size)))?;
    Ok(ExitCode::SUCCESS)
}

fn chosen(args: &RmArgs, store: &mut Store) -> anyhow::Result<Vec<Run>> {
    let names = store.names()?;
    let mut runs = store.choose(args.filter.as_deref(), &names, Keys::Some(Vec::new()))?;
    if !args.runs.is_empty() {
        let mut wanted = Vec::new();
        for given in &args.runs {
            wanted.push(store.find(given)?);
        }
        runs.retain(|run| wanted.contains(&run.name));
    }
    if let Some(text) = &args.keep {
        let rules = rules(&Keep::parse(text)?);
        let surplus = keep::surplus(&runs, &rules, store.now);
        runs = surplus.into_iter().cloned().collect();
    }
    Ok(runs)
}

/// Asks whether these runs are to go.
fn agreed(runs: &[Run], now: f64) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        bail!(
            "{} would be removed; --yes says that this is meant",
            plural(runs.len(), "run")
        );
    }
    let columns = vec![
        Column::left("run", 0),
        Column::left("status", 0),
        Column::left("started", 0),
        Column::right("size", 0),
    ];
    let rows: Vec<Vec<String>> = runs
        .iter()
        .map(|run| {
            vec![
                run.name.clone(),
                row::state(run.state),
                row::ago(run.started, now),
                bytes(run.bytes),
            ]
        })
        .collect();
    print(lines_of(columns, &rows))?;
    print(format!(
        "remove {} for good? [y/N] ",
        plural(runs.len(), "run")
    ))?;
    io::stdout().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Removes a run that nobody has.
fn remove(run: &RunDir) -> anyhow::Result<()> {
    // Held meanwhile, so that nobody goes on with it.
    let lock = run.lock(&mut |message| eprintln!("{message}"))?;
    run.clone().discard()?;
    drop(lock);
    Ok(())
}

/// The rules of the index for what a job says.
fn rules(keep: &Keep) -> Rules {
    Rules {
        newest: keep.newest,
        days: keep.days.map(f64::from),
        best: keep.best.zip(keep.by.clone()),
    }
}

/// Removes what a job does not keep of its runs, but never the one that has just ended, nor what a version of a model
/// was made from.
pub(crate) fn apply(
    keep: &Keep,
    index: &mut Index,
    (job, just_ended): (&str, &str),
    now: f64,
) -> anyhow::Result<()> {
    index.refresh_all()?;
    let registered = Registry::of(index.store())?.by_run()?;
    let mut runs = index.runs(&Keys::Some(Vec::new()))?;
    runs.retain(|run| run.job == job);
    let mut gone = Vec::new();
    for run in keep::surplus(&runs, &rules(keep), now) {
        if run.name == just_ended || registered.contains_key(&run.name) {
            continue;
        }
        remove(&RunDir::named(&run.name, index.store().join(&run.name)?))?;
        gone.push(run.name.clone());
    }
    Ok(index.forget(&gone)?)
}
