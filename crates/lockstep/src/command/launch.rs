//! `lockstep launch`: a script as a gang, without a job file.

use super::run::{failure, go, request_for, view_of};
use crate::args::LaunchArgs;
use crate::view::{View, shell};
use anyhow::{Context, bail};
use lockstep_engine::RunRequest;
use lockstep_events::event::Event;
use lockstep_job::{Job, Location, ScriptJob};
use std::process::ExitCode;
use std::time::Instant;

pub(crate) fn run(args: &LaunchArgs, started_at: Instant) -> anyhow::Result<ExitCode> {
    let request = request(args, started_at);
    if let Err(error) = &request
        && args.show.json
    {
        view(args).show(&Event::Result(failure(started_at, error)))?;
    }
    go(request?, view(args))
}

fn request(args: &LaunchArgs, started_at: Instant) -> anyhow::Result<RunRequest> {
    let folder = std::env::current_dir().context("cannot find the current folder")?;
    let named = || ScriptJob::name_of(&args.command);
    let name = args.name.clone().unwrap_or_else(named);
    if !Job::is_valid_name(&name) {
        bail!("--name: {name:?} cannot be a name; use letters, digits, `-`, `_` and `.`");
    }
    if args.workers == 0 {
        bail!("--workers: there must be at least one");
    }
    let mut job = Job::of_command(&name, &folder, args.command.clone(), args.workers);
    let store = Location::new(&args.store);
    job.run.store = match store.is_url() {
        true => store,
        false => Location::new(folder.join(&args.store).to_string_lossy()),
    };
    if let Some(max_restarts) = args.max_restarts {
        job.recover.max_restarts = max_restarts;
    }
    let resume = args.resume.as_ref().map(Option::as_deref);
    request_for(job, folder, resume, args.engine.engine, started_at)
}

fn view(args: &LaunchArgs) -> Box<dyn View> {
    let mut words = ["lockstep", "launch", "--workers"]
        .map(str::to_owned)
        .to_vec();
    words.extend([
        args.workers.to_string(),
        "--resume".to_owned(),
        "--".to_owned(),
    ]);
    words.extend(args.command.iter().map(|word| shell(word)));
    view_of(&args.show, words.join(" "), false)
}
