//! One file a command.

pub(crate) mod bench;
pub(crate) mod cache;
pub(crate) mod cluster;
pub(crate) mod completions;
pub(crate) mod data;
pub(crate) mod doctor;
mod dry_run;
pub(crate) mod embed;
pub(crate) mod evaluate;
pub(crate) mod export;
mod folds;
mod follow;
mod inference;
pub(crate) mod init;
pub(crate) mod job;
pub(crate) mod job_process;
pub(crate) mod jobs;
pub(crate) mod kube;
pub(crate) mod launch;
pub(crate) mod manual;
pub(crate) mod models;
pub(crate) mod node_check;
pub(crate) mod pod;
pub(crate) mod predict;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod runs;
mod scratch;
pub(crate) mod script_process;
pub(crate) mod serve;
pub(crate) mod serve_model;
pub(crate) mod simulate;
pub(crate) mod submit;
pub(crate) mod task_worker;
pub(crate) mod tune;
mod verify;
mod watched;
pub(crate) mod worker;

pub(crate) use init::JobKind;
pub(crate) use watched::StoppableView;

pub(crate) use runs::rm::rules as keep_rules;

use crate::args::Engine;
use crate::learners;
use lockstep_base::cores;
use lockstep_base::fs::CacheDir;
use lockstep_engine::{EngineError, FindCoordinator, RunRequest, StopFlag};
use lockstep_job::Job;
use lockstep_launch::Launcher;
use lockstep_launch::LocalLauncher;
use lockstep_launch::ray::{RayLauncher, RayRequest};
use serde::Serialize;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Instant;

/// The exit code when the reader of standard output went away, as if SIGPIPE had ended us.
pub(crate) const BROKEN_PIPE: u8 = 141;

/// What starts so many workers of a job. They run this same program: on this machine with the same cache, on others with
/// their own.
fn launcher(
    engine: Engine,
    job: &Job,
    workers: usize,
    cache: &CacheDir,
) -> Result<Box<dyn Launcher>, EngineError> {
    let program = std::env::current_exe();
    let program = program.map_err(EngineError::system("find this program's own file"))?;
    Ok(match engine {
        Engine::Local => {
            let launcher = LocalLauncher::new(program).with("LOCKSTEP_CACHE", cache.path());
            let cores = cores::share(workers).to_string();
            Box::new(launcher.with(cores::VARIABLE, cores))
        }
        Engine::Ray => Box::new(RayLauncher::open(RayRequest {
            name: job.name.clone(),
            workers,
            enough: job.workers().min.min(workers),
            resources: job.resources.clone(),
            program,
            lease_s: job.gang.lease_s,
            python: None,
            address: None,
        })?),
    })
}

/// What finds the coordinator's side of a job's learner.
fn coordinator(engine: Engine) -> FindCoordinator {
    match engine {
        Engine::Local => learners::coordinator_here,
        Engine::Ray => learners::coordinator,
    }
}

/// What the engine is asked to do with a job whose file lies, or would lie, in `folder`: a new run, from now to its end.
fn run_request(
    job: Job,
    folder: PathBuf,
    engine: Engine,
    cache: CacheDir,
    stop: StopFlag,
) -> Result<RunRequest, EngineError> {
    Ok(RunRequest {
        launcher: launcher(engine, &job, job.workers().max, &cache)?,
        coordinator: coordinator(engine),
        started_at: Instant::now(),
        resume: None,
        name: None,
        fork: None,
        max_steps: None,
        step_times: false,
        profile: None,
        job,
        folder,
        stop,
        cache,
    })
}

/// Whether an error only means that nobody reads the output any more, as in `lockstep … | head -1`.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.downcast_ref::<io::Error>().is_some_and(broken)
}

/// Refuses to remove something where nobody can be asked whether that is meant.
fn check_terminal(what: &str) -> anyhow::Result<()> {
    if !io::stdin().is_terminal() {
        anyhow::bail!("{what} would be removed; --yes says that this is meant");
    }
    Ok(())
}

/// Asks whether something is to be removed.
fn confirmed(what: &str) -> anyhow::Result<bool> {
    print(format!("remove {what} for good? [y/N] "))?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Writes a value to standard output as JSON that people can read too.
fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    Ok(print(serde_json::to_string_pretty(value)? + "\n")?)
}

/// Says on standard error how it goes, unless only results are asked for.
fn tell(message: impl std::fmt::Display) {
    if !crate::args::is_quiet() {
        eprintln!("{message}");
    }
}

/// Writes text to standard output, without panicking when nobody reads it.
fn print(text: impl AsRef<str>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_ref().as_bytes())?;
    out.flush()
}
