//! `lockstep doctor`: what is wrong, and what to do about it.
//!
//! Every check does what a run would do, and not only look whether something is there: it writes a file to the store and
//! reads it back, asks the server, loads the library. One file a kind of thing. What was asked for and does not work is a
//! problem; what nobody asked for and is not there is only said.

mod check;
mod job;
mod machine;
mod programs;
mod services;
mod store;

use super::{print, print_json};
use crate::args::{DoctorArgs, overrides};
use crate::learners;
use check::{Check, State};
use console::style;
use lockstep_job::{Job, Location, Storage};
use std::process::ExitCode;

pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let overrides = overrides(&args.set)?;
    let job = match &args.job {
        Some(path) => Some(Job::load(path, &overrides, None)?),
        None => None,
    };
    let mut checks = machine::checks(job.as_ref());
    let store = match (&args.store, &job) {
        (Some(store), Some(job)) => Some((Location::new(store), job.storage.clone())),
        (Some(store), None) => Some((Location::new(store), Storage::of_overrides(&overrides)?)),
        (None, Some(job)) => Some((job.run.store.clone(), job.storage.clone())),
        (None, None) => None,
    };
    if let Some((location, storage)) = &store {
        checks.extend(store::checks(location, storage));
    }
    if let Some(job) = &job {
        checks.extend(job::checks(job));
    }
    checks.extend(programs::checks(
        job.as_ref()
            .and_then(|job| learners::of(job).needs().program),
    ));
    checks.extend(services::checks(args, job.as_ref()));
    show(args, &checks)?;
    let worst = checks.iter().map(|check| check.state).max();
    Ok(match worst {
        Some(State::Problem) => ExitCode::from(2),
        Some(State::Warning) => ExitCode::from(1),
        _ => ExitCode::SUCCESS,
    })
}

fn show(args: &DoctorArgs, checks: &[Check]) -> anyhow::Result<()> {
    if args.json {
        let report = serde_json::json!({
            "lockstep": env!("CARGO_PKG_VERSION"),
            "checks": checks,
        });
        return print_json(&report);
    }
    let mut text = String::new();
    for check in checks {
        let mark = match check.state {
            State::Ok => style("ok     ").green(),
            State::Absent => style("absent ").dim(),
            State::Warning => style("warning").yellow().bold(),
            State::Problem => style("problem").red().bold(),
        };
        text += &format!("{mark}  {:<12} {}\n", check.name, check.found);
        if let Some(what) = &check.what_to_do {
            text += &format!("{:23}→ {what}\n", "");
        }
    }
    Ok(print(text)?)
}
