//! The plan of a job that grows trees.

use super::facts_and_notes;
use crate::view::{count, plural};
use lockstep_base::fs::CacheDir;
use lockstep_job::{Job, TreesJob};
use lockstep_resolve::ResolvedTrees;
use lockstep_runs::RunDir;
use lockstep_trees::PreparedTrees;
use serde_json::json;

/// Checks all that growing the trees would, and says what it comes to.
pub(super) fn plan(job: &Job, own: &TreesJob, as_json: bool) -> anyhow::Result<String> {
    let cache = CacheDir::locate()?;
    let resolved = ResolvedTrees::of(job, own)?;
    let prepared = lockstep_trees::prepare(&resolved, &cache, &mut |message| {
        eprintln!("{message}");
    })?;
    RunDir::check_store(&resolved.store)?;
    Ok(match as_json {
        true => format!("{}\n", in_json(job, own, &prepared)),
        false => facts_and_notes(&facts(job, own, &prepared), &prepared.notes),
    })
}

fn facts(job: &Job, own: &TreesJob, prepared: &PreparedTrees) -> Vec<(String, String)> {
    let rows = format!(
        "{} to train on, {} to validate, {} to test",
        count(prepared.train_rows as u64),
        count(prepared.val_rows as u64),
        count(prepared.test_rows as u64)
    );
    let rounds = match own.train.patience {
        Some(patience) => format!(
            "{}, fewer after {patience} that are no better",
            own.model.rounds
        ),
        None => own.model.rounds.to_string(),
    };
    let pairs = [
        ("samples", rows),
        ("rounds", rounds),
        ("workers", plural(own.train.workers.max, "worker")),
        ("measured by", prepared.metrics.join(", ")),
        ("store", job.run.store.to_string()),
    ];
    pairs.map(|(name, value)| (name.to_owned(), value)).into()
}

fn in_json(job: &Job, own: &TreesJob, prepared: &PreparedTrees) -> serde_json::Value {
    json!({
        "name": job.name,
        "train_samples": prepared.train_rows,
        "val_samples": prepared.val_rows,
        "test_samples": prepared.test_rows,
        "rounds": own.model.rounds,
        "workers": own.train.workers.max,
        "metrics": prepared.metrics,
        "notes": prepared.notes,
    })
}
