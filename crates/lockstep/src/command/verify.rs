//! `lockstep run --verify-determinism`: trains some steps twice and compares the weights.

use super::scratch::ScratchStore;
use super::{print, run_request};
use crate::args::{Engine, RunArgs};
use crate::signals::{self, INTERRUPTED};
use crate::view::plural;
use anyhow::bail;
use lockstep_base::fs::CacheDir;
use lockstep_engine::RunRequest;
use lockstep_engine::{Stop, StopFlag};
use lockstep_events::event::{Event, Status};
use lockstep_job::{Job, JobDevice, Workers};
use lockstep_resolve::device;
use std::path::PathBuf;
use std::process::ExitCode;

/// Enough that a difference in any bit has spread to all weights.
const STEPS: u64 = 300;

pub(crate) fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    if args.engine.engine != Engine::Local {
        bail!("--verify-determinism trains on this machine alone; leave --engine out");
    }
    let mut job = args.job.load()?;
    job.network(&args.job.path)?;
    let scratch = ScratchStore::new()?;
    job.run.store = scratch.location();
    job.spare_checkpoints();
    let stop = StopFlag::new();
    signals::obey(stop.clone())?;
    let workers = job.workers().max;
    // Another number of workers where the lanes allow it: that must not matter either.
    let other = if workers > 1 { 1 } else { job.lanes().min(2) };
    // And the processor where there is a GPU.
    let gpu = job.device().and_then(|own| device(own).decide(false).gpu);
    let (mut hashes, mut words) = (Vec::new(), Vec::new());
    for (workers, is_other) in [(workers, false), (other, true)] {
        job.set_workers(Workers::exactly(workers));
        let on = plural(workers, "worker");
        words.push(match &gpu {
            None => on,
            Some(_) if is_other => {
                job.devices_mut().for_each(|own| *own = JobDevice::Cpu);
                format!("{on} on the processor")
            }
            Some(gpu) => format!("{on} on {gpu}"),
        });
        let Some(hash) = train(&job, &stop)? else {
            return Ok(ExitCode::from(INTERRUPTED));
        };
        if !args.show.json {
            print(format!(
                "{hash}  {STEPS} steps on {}\n",
                words[words.len() - 1]
            ))?;
        }
        hashes.push(hash);
    }
    let same = hashes[0] == hashes[1];
    if args.show.json {
        let verified = serde_json::json!({
            "event": "verified", "same": same, "steps": STEPS, "workers": [workers, other], "on": words,
            "weights_sha256": hashes,
        });
        print(format!("{verified}\n"))?;
    }
    match same {
        true => Ok(ExitCode::SUCCESS),
        false => bail!(
            "the weights differ: {} on {}, {} on {}; this is a bug",
            hashes[0],
            words[0],
            hashes[1],
            words[1]
        ),
    }
}

/// The hash of the weights after some steps, or nothing when a stop was asked for.
fn train(job: &Job, stop: &StopFlag) -> anyhow::Result<Option<String>> {
    let (folder, cache) = (PathBuf::new(), CacheDir::locate()?);
    let request = RunRequest {
        max_steps: Some(STEPS),
        ..run_request(job.clone(), folder, Engine::Local, cache, stop.clone())?
    };
    let result = lockstep_engine::run(request, &mut |event| match event {
        Event::Warning { message } => eprintln!("warning: {message}"),
        Event::Restart(restart) => eprintln!("warning: {}", restart.reason),
        _ => (),
    })?;
    if stop.get() != Stop::No {
        return Ok(None);
    }
    match (result.status, result.weights_sha256) {
        (Status::Succeeded | Status::Interrupted, Some(hash)) => Ok(Some(hash)),
        _ => bail!(result.error.unwrap_or_else(|| "training failed".to_owned())),
    }
}
