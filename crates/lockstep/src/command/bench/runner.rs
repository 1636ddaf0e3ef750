//! Runs that are measured. They leave nothing behind: what counts is how long they took and what they learned.

use super::changes;
use super::peers::Peers;
use crate::args::{BenchArgs, Engine};
use crate::command::launcher;
use crate::command::scratch::ScratchStore;
use crate::learners;
use anyhow::{Context, bail};
use lockstep_base::fs::CacheDir;
use lockstep_bench::{EpochPoint, How, Measured, Part, Peer, Plan, Setting};
use lockstep_engine::{RunRequest, Stop, StopFlag};
use lockstep_events::event::{EpochResult, Event, RunResult, Status, StepTimes};
use lockstep_job::{Job, NetworkJob};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

/// Steps of a run that is not counted: enough that data is decoded and every buffer touched.
const WARM_UP_STEPS: u64 = 20;
/// Steps of the run that says where the time of a step goes. It is not counted either: looking at the clock takes time.
const PROFILED_STEPS: u64 = 200;

/// Measures settings, one after the other.
pub(super) struct Runner {
    /// The settings and the job that each is.
    jobs: Vec<(Setting, Job)>,
    folder: PathBuf,
    cache: CacheDir,
    stop: StopFlag,
    /// Samples of an epoch, once a run has said so.
    samples: Option<u64>,
    /// Where the time of steps goes, by setting.
    profiles: Vec<(Setting, StepTimes)>,
    /// Other systems, where some are asked for.
    peers: Option<Peers>,
}

/// What a run is trained for.
#[derive(Default)]
struct Purpose {
    max_steps: Option<u64>,
    step_times: bool,
}

/// What a run said, as far as it counts.
#[derive(Default)]
struct Heard {
    samples: u64,
    parameters: u64,
    epochs: Vec<EpochPoint>,
}

impl Runner {
    /// Reads the job of every setting, so that what is wrong with one is said before anything is measured.
    pub(super) fn new(
        args: &BenchArgs,
        plan: &Plan,
        scratch: &ScratchStore,
        stop: StopFlag,
    ) -> anyhow::Result<Runner> {
        let mut jobs = Vec::new();
        for setting in &plan.settings {
            let given = args.job(Some(match setting.how {
                How::Apart => 1,
                _ => setting.workers,
            }));
            let parts = match setting.how {
                How::Apart => setting.workers,
                _ => 1,
            };
            let job = args.job(Some(setting.workers)).load()?;
            // A worker of the gang computes so many lanes; alone it computes the same.
            let lanes = matches!(setting.how, How::Apart).then(|| (job.lanes() / parts).max(1));
            let batch = match args.batch.is_empty() && !args.weak && parts == 1 {
                true => None,
                false => setting.batch.map(|batch| batch / parts as u64),
            };
            let mut overrides = given.overrides()?;
            overrides.extend(changes(batch, lanes, &scratch.location()));
            let job = Job::load(&given.path, &overrides, given.workers)?;
            jobs.push((setting.clone(), job));
        }
        let file = std::path::absolute(&args.path).context("cannot find the job file's folder")?;
        Ok(Runner {
            jobs,
            folder: file.parent().map(Path::to_owned).unwrap_or_default(),
            cache: CacheDir::locate()?,
            stop,
            samples: None,
            profiles: Vec::new(),
            peers: None,
        })
    }

    /// Makes other systems ready to train the job.
    pub(super) fn prepare_peers(&mut self, peers: &[Peer]) -> anyhow::Result<()> {
        let job = self.jobs.first().map(|(_, job)| job);
        let network = job.and_then(|job| Some((job, network(job)?)));
        if let (false, Some(job)) = (peers.is_empty(), network) {
            self.peers = Some(Peers::prepare(peers, job, &self.cache, self.stop.clone())?);
        }
        Ok(())
    }

    /// Measures a setting once. Nothing if somebody asked to stop.
    pub(super) fn measure(
        &mut self,
        part: Part,
        setting: &Setting,
    ) -> anyhow::Result<Option<Measured>> {
        let found = self.jobs.iter().find(|(known, _)| known == setting);
        let job = &found.context("no such setting was planned")?.1;
        match (&setting.how, part) {
            // The gang's warm-up has decoded the data for all.
            (How::Apart, Part::WarmUp) => Ok(Some(Measured::default())),
            (How::Apart, Part::Turn) => self.apart(job, setting),
            (How::Peer(peer), part) => {
                let (Some(peers), Some(network)) = (&self.peers, network(job)) else {
                    bail!("{peer} was not made ready");
                };
                let steps = (part == Part::WarmUp).then_some(WARM_UP_STEPS);
                peers.train(*peer, network, setting, steps)
            }
            (_, Part::WarmUp) => {
                let purpose = Purpose {
                    max_steps: Some(WARM_UP_STEPS),
                    step_times: false,
                };
                let Some((_, heard)) = self.train(job, purpose)? else {
                    return Ok(None);
                };
                let profile = self.profile(job)?;
                self.samples = Some(heard.samples);
                self.profiles
                    .extend(profile.map(|times| (setting.clone(), times)));
                Ok((self.stop.get() == Stop::No).then(Measured::default))
            }
            (_, Part::Turn) => {
                let Some((result, heard)) = self.train(job, Purpose::default())? else {
                    return Ok(None);
                };
                let profile = self.profiles.iter().find(|(known, _)| known == setting);
                Ok(Some(Measured {
                    step: profile.map(|(_, times)| *times),
                    ..measured(&result, heard)
                }))
            }
        }
    }

    /// Where the time of steps goes; only networks say so.
    fn profile(&self, job: &Job) -> anyhow::Result<Option<StepTimes>> {
        let purpose = Purpose {
            max_steps: Some(PROFILED_STEPS),
            step_times: true,
        };
        Ok(match network(job) {
            Some(_) => {
                let run = self.train(job, purpose)?;
                run.and_then(|(result, _)| result.timing.step)
            }
            None => None,
        })
    }

    /// As many runs at once as there are workers, each with its share of the batch, for as many steps as a gang takes.
    fn apart(&self, job: &Job, setting: &Setting) -> anyhow::Result<Option<Measured>> {
        let Some(network) = network(job) else {
            bail!("only a network's workers can be measured apart");
        };
        let batch = setting.batch.unwrap_or(1).max(1);
        let steps = self.samples.unwrap_or(0).div_ceil(batch).max(1);
        let steps = steps * u64::from(network.train.learner.epochs);
        let ended: Vec<_> = thread::scope(|scope| {
            let runs: Vec<_> = (0..setting.workers)
                .map(|_| {
                    let purpose = Purpose {
                        max_steps: Some(steps),
                        step_times: false,
                    };
                    scope.spawn(|| self.train(job, purpose))
                })
                .collect();
            runs.into_iter().map(|run| run.join()).collect()
        });
        let mut all = Measured::default();
        for ended in ended {
            let Ok(ended) = ended else {
                bail!("a run without others ended in a panic");
            };
            let Some((result, _)) = ended? else {
                return Ok(None);
            };
            let one = measured(&result, Heard::default());
            all.training_s = all.training_s.max(one.training_s);
            all.start_s = all.start_s.max(one.start_s);
            all.total_s = all.total_s.max(one.total_s);
            all.samples_per_s += one.samples_per_s;
            all.restarts += one.restarts;
        }
        Ok(Some(all))
    }

    /// Trains once, and removes what was written.
    fn train(&self, job: &Job, purpose: Purpose) -> anyhow::Result<Option<(RunResult, Heard)>> {
        let request = RunRequest {
            coordinator: learners::coordinator,
            job: job.clone(),
            folder: self.folder.clone(),
            started_at: Instant::now(),
            resume: None,
            fork: None,
            name: None,
            max_steps: purpose.max_steps,
            step_times: purpose.step_times,
            stop: self.stop.clone(),
            launcher: launcher(Engine::Local, job, job.workers().max, &self.cache)?,
            cache: self.cache.clone(),
        };
        let mut heard = Heard::default();
        let result = lockstep_engine::run(request, &mut |event| heard.hear(event))?;
        if let Some(folder) = &result.run_dir {
            // What cannot be removed now goes with the store.
            let _ = fs::remove_dir_all(folder);
        }
        if self.stop.get() != Stop::No {
            return Ok(None);
        }
        match result.status {
            Status::Succeeded => Ok(Some((result, heard))),
            Status::Interrupted if purpose.max_steps.is_some() => Ok(Some((result, heard))),
            _ => {
                let error = result.error;
                bail!(error.unwrap_or_else(|| "the run failed".to_owned()))
            }
        }
    }
}

/// What of a job is the network's own, if it trains one.
fn network(job: &Job) -> Option<&NetworkJob> {
    job.network(Path::new("")).ok()
}

impl Heard {
    fn hear(&mut self, event: Event) {
        match event {
            Event::Started(started) => {
                self.samples = started.train_samples as u64;
                self.parameters = started.parameters as u64;
            }
            Event::Epoch(epoch) => self.epochs.push(point(&epoch)),
            Event::Preparing { message } => eprintln!("{message}"),
            Event::Warning { message } => eprintln!("warning: {message}"),
            Event::Restart(restart) => eprintln!("warning: {}", restart.reason),
            _ => {}
        }
    }
}

fn point(epoch: &EpochResult) -> EpochPoint {
    let of = epoch.test.as_ref().or(epoch.val.as_ref());
    let of = of.unwrap_or(&epoch.train);
    EpochPoint {
        epoch: epoch.epoch,
        seconds: epoch.total_s,
        accuracy: of.get("accuracy"),
        loss: of.get("loss"),
    }
}

fn measured(result: &RunResult, heard: Heard) -> Measured {
    let last = heard.epochs.last();
    let of = |name: &str, of_epoch: Option<f64>| {
        let metrics = result.metrics.as_ref();
        metrics.and_then(|metrics| metrics.get(name)).or(of_epoch)
    };
    Measured {
        training_s: result.timing.train_s,
        start_s: result.timing.start_to_first_step_s,
        total_s: result.timing.total_s,
        samples_per_s: result.timing.samples_per_s,
        accuracy: of("accuracy", last.and_then(|epoch| epoch.accuracy)),
        loss: of("loss", last.and_then(|epoch| epoch.loss)),
        weights_sha256: result.weights_sha256.clone(),
        step: None,
        restarts: result.restarts,
        parameters: heard.parameters,
        epochs: heard.epochs,
    }
}
