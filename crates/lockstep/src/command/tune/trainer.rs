//! Trials that are trained: runs that stop at a rung, and go on from there later.

use super::load;
use super::record::reached;
use crate::args::TuneArgs;
use crate::command::launcher;
use crate::learners;
use anyhow::{Context, bail};
use lockstep_base::fs::CacheDir;
use lockstep_engine::{RunRequest, Stop, StopFlag};
use lockstep_events::event::{Event, Status};
use lockstep_place::Place;
use lockstep_runs::RunDir;
use lockstep_tune::{Reached, Round, Trial, Tuning};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

/// Trains trials.
pub(super) struct Trainer<'a> {
    pub(super) args: &'a TuneArgs,
    store: &'a Place,
    folder: PathBuf,
    cache: CacheDir,
    stop: StopFlag,
}

/// How far a trial is trained.
pub(super) struct Target<'a> {
    pub(super) epochs: u32,
    /// Whether these are all epochs of the job.
    pub(super) is_last: bool,
    /// What it is measured by then.
    pub(super) metric: &'a str,
    /// Whether more of it is better.
    pub(super) maximise: bool,
}

/// What training a trial to a rung came to.
enum Ended {
    Reached(Reached),
    Failed(String),
    Stopped,
}

impl<'a> Trainer<'a> {
    pub(super) fn new(
        args: &'a TuneArgs,
        store: &'a Place,
        stop: StopFlag,
    ) -> anyhow::Result<Self> {
        let file =
            std::path::absolute(&args.job.path).context("cannot find the job file's folder")?;
        Ok(Trainer {
            args,
            store,
            folder: file.parent().map(Path::to_owned).unwrap_or_default(),
            cache: CacheDir::locate()?,
            stop,
        })
    }

    /// Whether somebody asked to stop.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.get() != Stop::No
    }

    /// Trains all trials of a round, so many at a time, and calls `done` after each.
    pub(super) fn round(
        &self,
        tuning: &mut Tuning,
        round: &Round,
        parallel: usize,
        done: &mut dyn FnMut(&Tuning, usize) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let trials: Vec<Trial> = round
            .trials
            .iter()
            .map(|number| tuning.trials[*number].clone())
            .collect();
        let (name, metric) = (tuning.name.clone(), tuning.rules.metric.clone());
        let target = Target {
            epochs: round.epochs,
            is_last: round.rung + 1 == tuning.rules.rungs.len(),
            metric: &metric,
            maximise: tuning.rules.maximise,
        };
        let waiting = Mutex::new(trials.iter());
        let (sender, ended) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..parallel.min(trials.len()) {
                let (sender, waiting, name, target) = (sender.clone(), &waiting, &name, &target);
                scope.spawn(move || {
                    loop {
                        // The lock is never poisoned: no holder panics.
                        let next = waiting.lock().ok().and_then(|mut waiting| waiting.next());
                        let Some(trial) = next.filter(|_| !self.is_stopped()) else {
                            return;
                        };
                        let run = format!("{name}-{:03}", trial.number);
                        let ended = self.train(&run, trial, target);
                        if sender.send((trial.number, ended)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            let mut first_error = None;
            for (number, ended) in ended {
                match ended {
                    Ok(Ended::Reached(reached)) => tuning.trials[number].reached.push(reached),
                    Ok(Ended::Failed(why)) => tuning.trials[number].failed = Some(why),
                    Ok(Ended::Stopped) => continue,
                    Err(error) => {
                        // What cannot begin here cannot begin elsewhere: the others end in good order.
                        self.stop.raise(Stop::Graceful);
                        first_error.get_or_insert(error);
                        continue;
                    }
                }
                done(tuning, number)?;
            }
            first_error.map_or(Ok(()), Err)
        })
    }

    /// Trains a trial up to so many epochs, from wherever its run is.
    fn train(&self, name: &str, trial: &Trial, target: &Target<'_>) -> anyhow::Result<Ended> {
        let run = RunDir::named(name, self.store.join(name)?);
        if let Some(reached) = reached(&run, target)? {
            return Ok(Ended::Reached(reached));
        }
        let job = load(self.args, &trial.values)?;
        let stop = StopFlag::new();
        let request = RunRequest {
            coordinator: learners::coordinator,
            folder: self.folder.clone(),
            started_at: Instant::now(),
            resume: None,
            fork: None,
            name: Some(name.to_owned()),
            max_steps: None,
            step_times: false,
            stop: stop.clone(),
            launcher: launcher(
                self.args.engine.engine,
                &job,
                job.workers().max,
                &self.cache,
            )?,
            cache: self.cache.clone(),
            job,
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
        if let Some(reached) = reached(&run, target)? {
            return Ok(Ended::Reached(reached));
        }
        match (result.status, self.is_stopped()) {
            (Status::Failed, _) => Ok(Ended::Failed(
                result.error.unwrap_or_else(|| "the run failed".to_owned()),
            )),
            (_, true) => Ok(Ended::Stopped),
            (_, false) => bail!(
                "trial {} ended before epoch {}",
                trial.number,
                target.epochs
            ),
        }
    }
}
