//! Trials that the engine trains: runs that stop at a rung, and go on from there later.

use super::load;
use crate::args::TuneArgs;
use crate::command::run_request;
use crate::view::plural;
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
        let pair = |(key, value): &(String, String)| format!("{key}={value}");
        let values: Vec<String> = trial.values.iter().map(pair).collect();
        let came_to = match (&trial.failed, trial.reached.last()) {
            (Some(why), _) => format!("failed: {why}"),
            (None, Some(reached)) => format!(
                "{} {:.4} after {}",
                self.args.metric,
                reached.value,
                plural(reached.epochs as usize, "epoch")
            ),
            (None, None) => String::new(),
        };
        let number = trial.number;
        eprintln!("trial {number:3}  {}  {came_to}", values.join(" "));
    }

    fn is_stopped(&self) -> bool {
        self.stop.get() != Stop::No
    }

    fn stop(&self) {
        self.stop.raise(Stop::Graceful);
    }
}
