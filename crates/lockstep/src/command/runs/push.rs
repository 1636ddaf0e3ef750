//! `lockstep runs push`: runs that ended, to MLflow.

use super::store::Store;
use crate::args::{PushArgs, overrides};
use crate::command::print;
use crate::tracking;
use anyhow::Context;
use lockstep_job::Job;
use lockstep_resolve::access;
use lockstep_track::mlflow::{MlflowSettings, push};

pub(super) fn run(args: &PushArgs) -> anyhow::Result<()> {
    let overrides = overrides(&args.store.set)?;
    let mut store = Store::holding(&args.store, &args.runs)?;
    for named in &args.runs {
        let name = store.find(named)?;
        let run = store.run(&name)?;
        // Whoever trains it tracks it, and two would get in each other's way.
        let _lock = run.lock(&mut |_| {})?;
        let file = run.job().local_copy()?;
        let job = Job::load(file.path(), &overrides, None)?;
        let settings = settings(args, &job)?;
        let server = settings.server.clone();
        let id = push(&run, settings, access(&job.storage)?, tracking::export)
            .with_context(|| format!("cannot push {name}"))?;
        print(format!("{name}  {server}  run {id}\n"))?;
    }
    Ok(())
}

/// What the command line says, then the run's job, then the environment.
fn settings(args: &PushArgs, job: &Job) -> anyhow::Result<MlflowSettings> {
    let variable = |name: &str| {
        let value = std::env::var(name).ok();
        value.filter(|value| !value.is_empty())
    };
    let found = match &args.mlflow {
        Some(server) => MlflowSettings::at(server, &job.track, &job.name, &variable).map(Some),
        None => MlflowSettings::of(&job.track, &job.name, &variable),
    };
    let found = found.map_err(anyhow::Error::msg)?;
    found.context("no server is named: add --mlflow URL, or set MLFLOW_TRACKING_URI")
}
