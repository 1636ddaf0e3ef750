//! The files that a job names, and which of them travel with it.
//!
//! The rule is one sentence: what is written as a relative path travels, what is written as an absolute path or
//! as a URL is read where the job runs. So whoever has data on storage that the whole cluster sees names it as the
//! cluster does, and whoever has a folder with a job and its data submits it as it is.

use crate::args::JobArgs;
use anyhow::Context;
use lockstep_job::{Job, JobError, LocalInput};
use std::path::Path;

/// A job file lies here in thought, to see which paths move with it.
const ELSEWHERE: &str = "/a folder that is not there/job.toml";

/// What a job reads and writes that moves with its file.
pub(in crate::command) struct Moving {
    /// What it reads.
    pub(in crate::command) inputs: Vec<LocalInput>,
    /// Whether its runs go to a folder beside it.
    pub(in crate::command) store: bool,
}

/// What of `job` moves with its file: all that it names by relative paths.
pub(in crate::command) fn moving(args: &JobArgs, job: &Job) -> anyhow::Result<Moving> {
    let text = std::fs::read_to_string(&args.path)
        .with_context(|| format!("cannot read {}", args.path.display()))?;
    let elsewhere = parse_elsewhere(args, &text)?;
    let pairs = job.local_inputs().into_iter().zip(elsewhere.local_inputs());
    let moved = pairs.filter(|(here, there)| here.path != there.path);
    let moved = moved.map(|(here, _)| here);
    let mut found = Vec::new();
    for input in moved.chain(of_command(args, job)?) {
        check(&input)?;
        let beside = beside(&input);
        found.push(input);
        found.extend(beside);
    }
    Ok(Moving {
        inputs: found,
        store: job.run.store != elsewhere.run.store,
    })
}

/// The files that a script's command names.
fn of_command(args: &JobArgs, job: &Job) -> anyhow::Result<Vec<LocalInput>> {
    let file = std::path::absolute(&args.path)?;
    Ok(job.command_inputs(file.parent().unwrap_or(Path::new("/"))))
}

fn parse_elsewhere(args: &JobArgs, text: &str) -> Result<Job, JobError> {
    Job::parse(Path::new(ELSEWHERE), text, &args.overrides()?, args.workers)
}

fn check(input: &LocalInput) -> anyhow::Result<()> {
    if !input.path.exists() {
        anyhow::bail!(
            "{}: {} does not exist; a path that is there on the cluster alone must be absolute",
            input.key,
            input.path.display()
        );
    }
    Ok(())
}

/// What belongs to it without being named.
fn beside(input: &LocalInput) -> Option<LocalInput> {
    let path = match input.key {
        // A file of weights may have its encoder's description beside it.
        "embed.model" if input.path.is_file() => Some(input.path.with_file_name("config.json")),
        "data.train" | "data.val" | "data.test" if input.path.is_file() => {
            lockstep_data::labels_beside(&input.path).ok()
        }
        _ => None,
    };
    let path = path.filter(|path| path.is_file());
    path.map(|path| LocalInput {
        key: input.key,
        path,
    })
}
