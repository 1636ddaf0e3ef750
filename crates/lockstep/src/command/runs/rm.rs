//! `lockstep runs rm`.

use super::row;
use super::store::Store;
use crate::args::RmArgs;
use crate::command::{check_terminal, confirmed, print, tell};
use crate::view::{bytes, lines_of, plural};
use anyhow::{Context, bail};
use lockstep_index::keep::{self, Rules};
use lockstep_index::{Keys, Run};
use lockstep_job::Keep;
use std::process::ExitCode;

pub(super) fn run(args: &RmArgs) -> anyhow::Result<ExitCode> {
    let mut store = Store::holding(&args.store, &args.runs)?;
    let chosen = chosen(args, &mut store)?;
    let named = !args.runs.is_empty();
    let (runs, kept) = keep::removable(chosen, &store.place)?;
    // Who named a run wants that one to go, or to know why it does not.
    if named && !kept.is_empty() {
        bail!("{}", kept.join("\n"));
    }
    for why in &kept {
        tell(format_args!("note: {why}"));
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
        let removed = folder.remove(&mut |message| tell(message));
        removed.with_context(|| format!("cannot remove {}", run.name))?;
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
    let number = plural(runs.len(), "run");
    check_terminal(&number)?;
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
    print(lines_of(&["run", "status", "started", ">size"], &rows))?;
    confirmed(&number)
}

/// The rules of the index for what a job says.
pub(crate) fn rules(keep: &Keep) -> Rules {
    Rules {
        newest: keep.newest,
        days: keep.days.map(f64::from),
        best: keep.best.zip(keep.by.clone()),
    }
}
