//! `lockstep replay`: trains a run again from its record, and holds the two against each other.
//!
//! The same job comes to the same bits, on any number of workers. So a run can be asked for again, and every step
//! of it compared: by the marks that it left ([`Trace`](lockstep_events::Trace)), and in the end by the hash of its
//! weights. If they part, the first step and the tensors that differ are named; if the data are others, that is said
//! before anything is trained.

mod record;
mod verdict;

use super::inference::open_run;
use super::print;
use super::run::{request_for, view_of};
use super::scratch::ScratchStore;
use super::watched::Watched;
use crate::args::ReplayArgs;
use crate::signals::INTERRUPTED;
use anyhow::{Context, bail};
use lockstep_engine::{EngineError, RunRequest, Stop, StopFlag};
use lockstep_events::event::{Event, RunResult, Status};
use lockstep_job::{Job, Location, Override};
use lockstep_runs::RunDir;
use lockstep_track::Origin;
use record::RunRecord;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use verdict::Verdict;

pub(crate) fn run(args: &ReplayArgs, started_at: Instant) -> anyhow::Result<ExitCode> {
    let run = open_run(&args.run, &args.set)?;
    let earlier = RunRecord::read(&run)?;
    earlier.check_comparable(&run.name)?;
    let scratch = ScratchStore::new();
    let request = request(args, &run, &earlier, &scratch, started_at)?;
    let stop = request.stop.clone();
    let words = format!("lockstep replay {}", args.run.display());
    let mut watched = Watched::new(view_of(&args.show, words), stop.clone());
    let mut replay = Replay {
        earlier: &earlier,
        stop: stop.clone(),
        run: None,
        verdict: None,
    };
    let result = lockstep_engine::run(request, &mut |event| {
        replay.hear(&event);
        // The last word is the verdict.
        if args.show.json || !matches!(event, Event::Result(_)) {
            watched.show(&event);
        }
    });
    if let Some(code) = watched.end()? {
        return Ok(code);
    }
    let Some(verdict) = replay.conclude(result)? else {
        eprintln!("interrupted; nothing was compared to its end");
        return Ok(ExitCode::from(INTERRUPTED));
    };
    if args.show.json {
        print(format!("{}\n", verdict.json(&run.name)))?;
    }
    match verdict.is_same() {
        true if args.show.json => {}
        true => print(format!("{}\n", verdict.words(&run.name)))?,
        false => bail!(verdict.words(&run.name)),
    }
    Ok(ExitCode::SUCCESS)
}

/// What the engine is asked to do: the job of the run, as far as that came.
fn request(
    args: &ReplayArgs,
    run: &RunDir,
    earlier: &RunRecord,
    scratch: &ScratchStore,
    started_at: Instant,
) -> anyhow::Result<RunRequest> {
    let mut overrides: Vec<Override> = Vec::new();
    for set in &args.set {
        overrides.push(set.parse()?);
    }
    let store = match &args.keep {
        Some(keep) => {
            let keep = std::path::absolute(keep).context("--keep: cannot find the folder")?;
            Location::new(keep.to_string_lossy())
        }
        None => scratch.location(),
    };
    overrides.push(Override::text("--keep", "run.store", &store.to_string()));
    let file = run.job().local_copy()?;
    let mut job = Job::load(file.path(), &overrides, args.workers)?;
    job.spare_checkpoints();
    let request = request_for(job, folder(run)?, None, args.engine.engine, started_at)?;
    Ok(RunRequest {
        max_steps: earlier.stopped_after(),
        ..request
    })
}

/// Where scripts start: the folder of the job file, if it is there, else the current one.
pub(super) fn folder(run: &RunDir) -> anyhow::Result<PathBuf> {
    let origin = run.origin().read().unwrap_or_default();
    let origin: Origin = serde_json::from_slice(&origin).unwrap_or_default();
    let folder = PathBuf::from(origin.folder);
    match folder.is_absolute() && folder.is_dir() {
        true => Ok(folder),
        false => std::env::current_dir().context("cannot find the current folder"),
    }
}

/// A run that is trained again, beside the record of the first.
struct Replay<'a> {
    earlier: &'a RunRecord,
    stop: StopFlag,
    run: Option<RunDir>,
    verdict: Option<Verdict>,
}

impl Replay<'_> {
    /// Compares what can be compared by now. Where the two have parted there is no need to go on.
    fn hear(&mut self, event: &Event) {
        let found = match event {
            Event::Started(started) => {
                self.run = record::opened(started);
                Verdict::of_data(&self.earlier.data, &started.data)
            }
            Event::Epoch(_) => self.compare(),
            _ => None,
        };
        if let Some(verdict) = found {
            self.stop.raise(Stop::Now);
            self.verdict.get_or_insert(verdict);
        }
    }

    /// Where the two part, if that can be seen by now. What cannot be read now is read in the end.
    fn compare(&self) -> Option<Verdict> {
        let replayed = RunRecord::trace_of(self.run.as_ref()?).ok()?;
        Verdict::of_traces(&self.earlier.trace, &replayed)
    }

    /// What the comparison came to. Nothing if it was interrupted.
    fn conclude(self, result: Result<RunResult, EngineError>) -> anyhow::Result<Option<Verdict>> {
        if let Some(verdict) = self.verdict {
            return Ok(Some(verdict));
        }
        let result = result?;
        let run = match (&self.run, result.status) {
            (_, Status::Failed) => {
                let why = result.error;
                bail!(why.unwrap_or_else(|| "the run failed".to_owned()))
            }
            (Some(run), _) => run,
            (None, _) => return Ok(None),
        };
        if self.stop.get() != Stop::No {
            return Ok(None);
        }
        let replayed = RunRecord::read(run)?;
        Ok(Some(Verdict::of(self.earlier, &replayed)))
    }
}
