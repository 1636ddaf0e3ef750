//! `lockstep replay`: trains a run again from its record, and holds the two against each other.

mod words;

use super::print;
use super::run::{request_for, view_of};
use super::scratch::ScratchStore;
use super::watched::StoppableView;
use crate::args::{ReplayArgs, overrides};
use crate::signals::INTERRUPTED;
use anyhow::{Context, bail};
use lockstep_engine::RunRequest;
use lockstep_engine::infer::open_run;
use lockstep_engine::replay::{Replay, RunRecord};
use lockstep_events::event::Event;
use lockstep_job::{Job, Location, Override};
use lockstep_runs::RunDir;
use lockstep_track::Origin;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

pub(crate) fn run(args: &ReplayArgs, started_at: Instant) -> anyhow::Result<ExitCode> {
    let run = open_run(&args.run, &args.set)?;
    let earlier = RunRecord::read(&run)?;
    earlier.check_comparable(&run.name)?;
    let scratch = ScratchStore::new()?;
    let request = request(args, &run, &earlier, &scratch, started_at)?;
    let stop = request.stop.clone();
    let words = format!("lockstep replay {}", args.run.display());
    let mut watched = StoppableView::new(view_of(&args.show, words, false), stop.clone());
    let mut replay = Replay::new(&earlier, stop);
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
    let libraries = replay.libraries();
    let verdict = match replay.parted() {
        Some(verdict) => Some(verdict),
        None => replay.conclude(result?)?,
    };
    let Some(verdict) = verdict else {
        eprintln!("interrupted; nothing was compared to its end");
        return Ok(ExitCode::from(INTERRUPTED));
    };
    if args.show.json {
        let json = words::json(&verdict, &libraries, &run.name);
        print(format!("{json}\n"))?;
    }
    let words = words::words(&verdict, &libraries, &run.name);
    match verdict.is_same() {
        true if args.show.json => {}
        true => print(format!("{words}\n"))?,
        false => bail!(words),
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
    let mut overrides = overrides(&args.set)?;
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
    if let Some(device) = args.device {
        job.devices_mut().for_each(|own| *own = device);
    }
    job.check_secrets()?;
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
