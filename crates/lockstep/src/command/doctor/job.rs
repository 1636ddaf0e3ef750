//! What a job reads.

use super::check::{Check, State};
use crate::learners;
use crate::view::count;
use lockstep_base::fs::CacheDir;
use lockstep_engine::describe;
use lockstep_job::Job;
use std::path::Path;

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
    match (missing.is_empty(), learners::of(job).needs().opens_data) {
        (false, _) => missing,
        (true, true) => vec![data(job)],
        (true, false) => {
            let inputs = match job.local_inputs().len() {
                1 => "1 file or folder".to_owned(),
                many => format!("{} files and folders", count(many as u64)),
            };
            vec![Check::ok("data", format!("{inputs} of the job are there"))]
        }
    }
}

/// Opens the sets as a run would: what is not decoded yet is decoded.
fn data(job: &Job) -> Check {
    let opened = || -> anyhow::Result<Check> {
        let learner = learners::coordinator_here(job, Path::new(""))?;
        if learner.embedding().is_some() {
            return Ok(Check::ok(
                "data",
                "the pictures are looked at when they are embedded",
            ));
        }
        let mut tell = |message: &str| crate::command::tell(message);
        let plan = learner.prepare(None, &CacheDir::locate()?, &mut tell)?;
        let facts = plan.facts();
        Ok(Check::ok(
            "data",
            format!(
                "{} samples to train on, {} to validate, {} to test; {} parameters",
                count(facts.train_samples),
                count(facts.val_samples),
                count(facts.test_samples),
                count(facts.parameters)
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
