//! Trials that the engine trains: runs that stop at a rung, and go on from there later.

use super::{load, tell};
use crate::args::TuneArgs;
use crate::command::run_request;
use anyhow::Context;
use lockstep_base::fs::CacheDir;
use lockstep_engine::{RunRequest, Stop, StopFlag};
use lockstep_events::event::{Event, RunResult};
use lockstep_runs::RunDir;
use lockstep_tune::{Target, Trainer, Trial};
use std::path::{Path, PathBuf};

/// Trains trials with the engine.
pub(super) struct EngineTrainer<'a> {
    args: &'a TuneArgs,
    folder: PathBuf,
    cache: CacheDir,
    stop: StopFlag,
}

impl<'a> EngineTrainer<'a> {
    pub(super) fn new(args: &'a TuneArgs, stop: StopFlag) -> anyhow::Result<Self> {
        let file =
            std::path::absolute(&args.job.path).context("cannot find the job file's folder")?;
        Ok(Self {
            args,
            folder: file.parent().map(Path::to_owned).unwrap_or_default(),
            cache: CacheDir::locate()?,
            stop,
        })
    }
}

impl Trainer for EngineTrainer<'_> {
    type Error = anyhow::Error;

    fn train(&self, run: &RunDir, trial: &Trial, target: &Target<'_>) -> anyhow::Result<RunResult> {
        let job = load(self.args, &trial.values)?;
        let stop = StopFlag::new();
        let engine = self.args.engine.engine;
        let (folder, cache) = (self.folder.clone(), self.cache.clone());
        let request = RunRequest {
            name: Some(run.name.clone()),
            ..run_request(job, folder, engine, cache, stop.clone())?
        };
        let result = lockstep_engine::run(request, &mut |event| {
            stop.raise(self.stop.get());
            match event {
                // The last epoch of all ends by itself, with an evaluation.
                Event::Epoch(epoch) if !target.is_last && epoch.epoch >= target.epochs => {
                    stop.raise(Stop::Graceful);
                }
                Event::Warning { message } => {
                    eprintln!("trial {}: warning: {message}", trial.number)
                }
                _ => {}
            }
        })?;
        Ok(result)
    }

    fn job_file(&self, trial: &Trial) -> anyhow::Result<String> {
        Ok(load(self.args, &trial.values)?.to_toml())
    }

    fn done(&self, trial: &Trial) {
        tell(self.args, trial);
    }

    fn is_stopped(&self) -> bool {
        self.stop.get() != Stop::No
    }

    fn stop(&self) {
        self.stop.raise(Stop::Graceful);
    }
}
