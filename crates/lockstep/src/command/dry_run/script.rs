//! The plan of a job that starts a script. What the script does is the script's own: only what is started is known.

use super::facts_and_notes;
use crate::view::{plural, shell};
use lockstep_job::{Job, ScriptJob};
use lockstep_resolve::ResolvedScript;
use lockstep_runs::RunDir;
use serde_json::json;

/// Checks what can be checked before a script starts, and says what would be started.
pub(super) fn plan(job: &Job, own: &ScriptJob, as_json: bool) -> anyhow::Result<String> {
    let resolved = ResolvedScript::of(job, own)?;
    RunDir::check_store(&resolved.store)?;
    let (command, workers) = (&own.train.command, own.train.workers.max);
    if as_json {
        let plan = json!({ "name": job.name, "command": command, "workers": workers });
        return Ok(format!("{plan}\n"));
    }
    let words: Vec<String> = command.iter().map(|word| shell(word)).collect();
    let pairs = [
        ("command", words.join(" ")),
        ("workers", plural(workers, "worker")),
        ("store", job.run.store.to_string()),
    ];
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value));
    Ok(facts_and_notes(&pairs, &[]))
}
