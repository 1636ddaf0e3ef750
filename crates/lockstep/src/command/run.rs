//! `lockstep run`: trains a job.

use super::watched::StoppableView;
use super::{dry_run, folds, is_broken_pipe, run_request, verify};
use crate::args::{Engine, RunArgs, ShowArgs};
use crate::signals::{self, INTERRUPTED};
use crate::tracking::Tracked;
use crate::view::{Json, Options, Plain, Terminal, View, shell};
use anyhow::Context;
use lockstep_base::fs::CacheDir;
use lockstep_base::offline;
use lockstep_engine::StopFlag;
use lockstep_engine::infer::open_run;
use lockstep_engine::{ProfileRequest, RunRequest};
use lockstep_events::Recorded;
use lockstep_events::event::{Event, RunResult, Status};
use lockstep_job::{Job, Location, Storage, masked};
use lockstep_place::Place;
use lockstep_resolve::place;
use lockstep_runs::RunDir;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

pub(crate) fn run(args: &RunArgs, started_at: Instant) -> anyhow::Result<ExitCode> {
    if args.offline {
        offline::forbid();
    }
    if args.dry_run {
        let plan = || dry_run::run(&args.job.load()?, args.engine.engine, args.show.json);
        return ending_with_a_result(args, started_at, plan());
    }
    if let Some(count) = args.folds {
        return folds::run(args, usize::from(count));
    }
    if args.verify_determinism {
        return verify::run(args);
    }
    let request = ending_with_a_result(args, started_at, request(args, started_at))?;
    go(request, view(args))
}

/// Has the engine run a job, and shows how it goes.
pub(super) fn go(request: RunRequest, view: Box<dyn View>) -> anyhow::Result<ExitCode> {
    let mut watched = StoppableView::new(view, request.stop.clone());
    let mut tracked = Tracked::of(&request);
    let result = lockstep_engine::run(request, &mut |event| tracked.show(&mut watched, &event));
    if let Some(code) = watched.end()? {
        return Ok(code);
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

/// What the engine is asked to do.
fn request(args: &RunArgs, started_at: Instant) -> anyhow::Result<RunRequest> {
    let resume = args.resume.as_ref().map(Option::as_deref);
    let mut found = None;
    let (job, folder) = match resume {
        Some(run) if args.job.is_of_run() => {
            let (run, job, folder) = job_of_run(args, run)?;
            found = Some(run);
            (job, folder)
        }
        _ => {
            let file = std::path::absolute(&args.job.path);
            let file = file.context("cannot find the job file's folder")?;
            let folder = file.parent().map(Path::to_owned).unwrap_or_default();
            (args.job.load()?, folder)
        }
    };
    let resume = match &found {
        Some(run) => Some(Some(run.as_path())),
        None => resume,
    };
    if let (Some(_), Err(error)) = (&args.profile, job.network(&args.job.path)) {
        return Err(anyhow::Error::new(error).context("--profile"));
    }
    let (first, last) = args.profile_steps;
    let profile = args.profile.clone();
    Ok(RunRequest {
        fork: args.fork.map(Into::into),
        profile: profile.map(|path| ProfileRequest { path, first, last }),
        ..request_for(job, folder, resume, args.engine.engine, started_at)?
    })
}

/// The run to go on with, the job that it has kept, and the folder that its file lay in.
fn job_of_run(args: &RunArgs, run: Option<&Path>) -> anyhow::Result<(PathBuf, Job, PathBuf)> {
    let run = run.context("--resume needs the run's folder or name where no job file is named")?;
    let run =
        open_run(run, &args.job.set).with_context(|| format!("--resume {}", run.display()))?;
    let file = run.job().local_copy()?;
    let job = args.job.load_from(file.path())?;
    job.check_secrets()?;
    let place = PathBuf::from(run.place().to_string());
    Ok((place, job, super::replay::folder(&run)?))
}

/// What the engine is asked to do with a job whose file lies, or would lie, in `folder`.
pub(super) fn request_for(
    job: Job,
    folder: PathBuf,
    resume: Option<Option<&Path>>,
    engine: Engine,
    started_at: Instant,
) -> anyhow::Result<RunRequest> {
    let stop = StopFlag::new();
    signals::obey(stop.clone())?;
    let (store, storage) = (&job.run.store, &job.storage);
    if let Some(folder) = folder_of_submitted().filter(|folder| holds(folder, store)) {
        eprintln!(
            "warning: the run goes to {}, in the folder {} of the submitted job, which is removed when the job is \
             forgotten; leave run.store out to have it in the server's store",
            store.as_str(),
            folder.display()
        );
    }
    let resume = match resume {
        None => None,
        Some(Some(run)) => Some(find_run(run, store, storage)?),
        Some(None) => Some(newest_run(&job.name, store, storage)?),
    };
    Ok(RunRequest {
        resume,
        started_at,
        ..run_request(job, folder, engine, CacheDir::locate()?, stop)?
    })
}

/// The folder that is removed with the job of a server that this command was submitted as.
fn folder_of_submitted() -> Option<PathBuf> {
    std::env::var_os("LOCKSTEP_JOB_FOLDER").map(PathBuf::from)
}

/// Whether a store lies in this folder of this machine.
fn holds(folder: &Path, store: &Location) -> bool {
    !store.is_url() && Path::new(store.as_str()).starts_with(folder)
}

/// Passes on what was done before the engine takes over. A program that reads events gets a result
/// also when that failed.
fn ending_with_a_result<T>(
    args: &RunArgs,
    started_at: Instant,
    done: anyhow::Result<T>,
) -> anyhow::Result<T> {
    if let Err(error) = &done
        && args.show.json
        && !is_broken_pipe(error)
    {
        view(args).show(&Event::Result(failure(started_at, error)))?;
    }
    done
}

/// The last word of a run that failed before it began.
pub(super) fn failure(started_at: Instant, error: &anyhow::Error) -> RunResult {
    RunResult {
        error: Some(lockstep_engine::describe(error.as_ref())),
        ..RunResult::without_run(Status::Failed, started_at.elapsed())
    }
}

/// The view that suits the flags and where standard output goes.
fn view(args: &RunArgs) -> Box<dyn View> {
    let mut words = vec!["lockstep".to_owned(), "run".to_owned()];
    words.extend(args.job.words().iter().map(|word| shell(word)));
    if args.engine.engine == Engine::Ray {
        words.extend(["--engine", "ray"].map(str::to_owned));
    }
    words.push("--resume".to_owned());
    view_of(&args.show, words.join(" "), false)
}

/// The view of a run that this command, of which secrets are not shown, goes on with, and that is trained here, or
/// `elsewhere`.
pub(super) fn view_of(show: &ShowArgs, resume_command: String, elsewhere: bool) -> Box<dyn View> {
    let options = Options {
        quiet: show.quiet,
        verbose: show.verbose,
        resume_command: masked(&resume_command),
        elsewhere,
    };
    view_as(show.json, options)
}

/// The view for programs if they are to read it, else the one that suits where standard output goes.
pub(super) fn view_as(json: bool, options: Options) -> Box<dyn View> {
    if json {
        Box::new(Json::new(io::stdout(), options))
    } else if io::stdout().is_terminal() {
        Box::new(Terminal::new(options))
    } else {
        Box::new(Plain::new(io::stdout(), options, Recorded::clock()))
    }
}

/// The job's newest run.
fn newest_run(name: &str, store: &Location, storage: &Storage) -> anyhow::Result<Place> {
    let store = place(store, storage)?;
    let newest = RunDir::newest(&store, Some(name))?;
    let none = || format!("there is no run of `{name}` in {store}");
    Ok(newest.with_context(none)?.place().clone())
}

/// A run that is given as a path, as a URL, or as its name in the job's store or a part of it that no other has.
fn find_run(run: &Path, store: &Location, storage: &Storage) -> anyhow::Result<Place> {
    let text = run
        .to_str()
        .context("--resume: the path is not valid UTF-8")?;
    let given = Location::new(text);
    if given.is_url() {
        return Ok(place(&given, storage)?);
    }
    let store = place(store, storage)?;
    if !run.exists() {
        if let Some(found) = RunDir::find(&store, text)? {
            return Ok(found.place().clone());
        }
        // A bucket may not let us list it.
        if let (Ok(in_store), None) = (store.join(text), store.local()) {
            return Ok(in_store);
        }
    }
    let whole = std::path::absolute(run).unwrap_or_else(|_| run.to_owned());
    Ok(place(&Location::new(whole.to_string_lossy()), storage)?)
}
