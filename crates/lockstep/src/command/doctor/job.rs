//! What a job reads.

use super::check::{Check, State};
use crate::view::{count, plural};
use lockstep_base::fs::CacheDir;
use lockstep_engine::describe;
use lockstep_job::{Job, LearnerJob, NetworkJob};
use lockstep_resolve::ResolvedJob;

pub(super) fn checks(job: &Job) -> Vec<Check> {
    let missing: Vec<Check> = job
        .local_inputs()
        .iter()
        .filter(|input| !input.path.exists())
        .map(|input| {
            Check::wrong(
                State::Problem,
                "data",
                format!("{}: there is no {}", input.key, input.path.display()),
                "write the right path into the job file; paths are taken from the job file's folder",
            )
        })
        .collect();
    match (missing.is_empty(), &job.learner) {
        (false, _) => missing,
        (true, LearnerJob::Network(own)) => vec![network(job, own)],
        (true, _) => {
            let inputs = plural(job.local_inputs().len(), "file or folder");
            vec![Check::ok("data", format!("{inputs} of the job are there"))]
        }
    }
}

/// Opens the sets as a run would: what is not decoded yet is decoded.
fn network(job: &Job, own: &NetworkJob) -> Check {
    let opened = || -> anyhow::Result<Check> {
        let resolved = ResolvedJob::of(job, own)?;
        if resolved.embedding.is_some() {
            return Ok(Check::ok(
                "data",
                "the pictures are looked at when they are embedded",
            ));
        }
        let cache = CacheDir::locate()?;
        let mut tell = |message: &str| eprintln!("{message}");
        let prepared = lockstep_train::prepare(&resolved, &cache, &mut tell)?.0;
        Ok(Check::ok(
            "data",
            format!(
                "{} samples to train on, {} to validate, {} to test; {} parameters",
                count(prepared.train_samples),
                count(prepared.val_samples),
                count(prepared.test_samples),
                count(prepared.parameters)
            ),
        ))
    };
    opened().unwrap_or_else(|error| {
        Check::wrong(
            State::Problem,
            "data",
            describe(error.as_ref()),
            "look at [data] in the job file; `lockstep data list` has the sets that are known by name",
        )
    })
}
