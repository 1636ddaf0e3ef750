//! Trials that are trained here or on a cluster: runs that stop at a rung, and go on from there later.

use super::kube::KubeTrials;
use super::{load, tell};
use crate::args::TuneArgs;
use crate::command::run_request;
use anyhow::Context;
use lockstep_base::fs::CacheDir;
use lockstep_engine::{RunRequest, Stop, StopFlag};
use lockstep_events::event::{Event, RunResult};
use lockstep_runs::RunDir;
use lockstep_tune::{Target, Trainer, Trial};
use std::path::Path;

/// Trains trials with the engine, or as Jobs of Kubernetes.
pub(super) struct TrialTrainer<'a> {
    pub(super) args: &'a TuneArgs,
    /// What the job counts: epochs, or rounds.
    pub(super) unit: &'a str,
    pub(super) stop: StopFlag,
    /// The cluster that trains them, unless the engine does.
    pub(super) kube: Option<KubeTrials<'a>>,
}

impl TrialTrainer<'_> {
    /// Trains a trial with the engine.
    fn train_here(
        &self,
        run: &RunDir,
        trial: &Trial,
        target: &Target<'_>,
    ) -> anyhow::Result<RunResult> {
        let file = std::path::absolute(&self.args.job.path);
        let file = file.context("cannot find the job file's folder")?;
        let folder = file.parent().map(Path::to_owned).unwrap_or_default();
        let job = load(self.args, &trial.values)?;
        let stop = StopFlag::new();
        let engine = self.args.engine.engine;
        let cache = CacheDir::locate()?;
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
}

impl Trainer for TrialTrainer<'_> {
    type Error = anyhow::Error;

    fn train(&self, run: &RunDir, trial: &Trial, target: &Target<'_>) -> anyhow::Result<RunResult> {
        match &self.kube {
            Some(kube) => kube.train(run, trial, target),
            None => self.train_here(run, trial, target),
        }
    }

    fn job_file(&self, trial: &Trial) -> anyhow::Result<String> {
        Ok(load(self.args, &trial.values)?.to_toml())
    }

    fn done(&self, trial: &Trial) {
        tell(self.args, self.unit, trial);
    }

    fn is_stopped(&self) -> bool {
        self.stop.get() != Stop::No
    }

    fn stop(&self) {
        self.stop.raise(Stop::Graceful);
    }
}
