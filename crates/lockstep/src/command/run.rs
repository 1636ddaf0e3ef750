//! `lockstep run`: trains a job.

use super::{BROKEN_PIPE, dry_run};
use crate::args::RunArgs;
use crate::signals::{self, INTERRUPTED};
use crate::view::{Json, Options, Plain, Terminal, View, shell};
use anyhow::Context;
use lockstep_engine::local::{self, RunRequest};
use lockstep_engine::{Stop, StopFlag};
use lockstep_job::Job;
use lockstep_store::CacheDir;
use lockstep_train::event::Status;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

pub(crate) fn run(args: &RunArgs, started_at: Instant) -> anyhow::Result<ExitCode> {
    let job = args.job.load()?;
    if args.dry_run {
        return dry_run::run(&job, args.json);
    }
    let stop = StopFlag::new();
    signals::obey(stop.clone())?;
    let request = RunRequest {
        resume: args.resume.as_deref().map(|run| find_run(run, &job)),
        job,
        started_at,
        stop: stop.clone(),
        cache: CacheDir::locate()?,
        worker_exe: std::env::current_exe().context("cannot find this program's own file")?,
    };

    let mut view = view(args);
    let mut unseen = None;
    let result = local::run(request, &mut |event| {
        if let Err(error) = view.show(&event) {
            // Nobody sees this run any more: it ends, as a command in a pipe does.
            stop.raise(Stop::Now);
            unseen.get_or_insert(error);
        }
    });
    drop(view);
    match unseen {
        Some(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            return Ok(ExitCode::from(BROKEN_PIPE));
        }
        Some(error) => return Err(error).context("cannot write to standard output"),
        None => (),
    }
    let result = result?;
    match (result.status, result.error) {
        (Status::Succeeded, _) => Ok(ExitCode::SUCCESS),
        (Status::Interrupted, _) => Ok(ExitCode::from(INTERRUPTED)),
        (Status::Failed, error) => Err(anyhow::anyhow!(
            error.unwrap_or_else(|| "the run failed".to_owned())
        )),
    }
}

/// The view that suits the flags and where standard output goes.
fn view(args: &RunArgs) -> Box<dyn View> {
    let mut words = vec!["lockstep".to_owned(), "run".to_owned()];
    words.extend(args.job.words().iter().map(|word| shell(word)));
    words.push("--resume".to_owned());
    let options = Options {
        quiet: args.quiet,
        verbose: args.verbose,
        resume_command: words.join(" "),
    };
    if args.json {
        Box::new(Json::new(io::stdout(), options))
    } else if io::stdout().is_terminal() {
        Box::new(Terminal::new(options))
    } else {
        Box::new(Plain::new(io::stdout(), options))
    }
}

/// The folder of a run that is given as a path or as its name in the job's store.
fn find_run(run: &Path, job: &Job) -> PathBuf {
    let in_store = job.run.store.join(run);
    if !run.exists() && in_store.exists() {
        in_store
    } else {
        std::path::absolute(run).unwrap_or_else(|_| run.to_owned())
    }
}
