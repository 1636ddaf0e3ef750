//! Runs that are measured. They leave nothing behind: what counts is how long they took and what they learned.

use crate::peers::Peers;
use crate::{EpochPoint, How, MeasureError, Measured, Part, Peer, Setting};
use lockstep_base::fs::CacheDir;
use lockstep_events::event::{EpochResult, Event, RunResult, Status, StepTimes};
use lockstep_job::{Job, NetworkJob};
use std::error::Error;
use std::fs;
use std::path::Path;
use std::thread;

/// Steps of a run that is not counted: enough that data is decoded and every buffer touched.
const WARM_UP_STEPS: u64 = 20;
/// Steps of the run that says where the time of a step goes. It is not counted either: looking at the clock takes time.
const PROFILED_STEPS: u64 = 200;

/// Trains the runs that are measured.
pub trait RunTrainer: Send + Sync {
    /// Trains a job once, on this machine, and tells what happens.
    ///
    /// # Errors
    /// When it cannot begin. A run that fails says so in its result.
    fn train(
        &self,
        job: &Job,
        purpose: Purpose,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<RunResult, Box<dyn Error + Send + Sync>>;

    /// Whether somebody asked to stop.
    fn is_stopped(&self) -> bool;

    /// Told, in words, what people may want to know.
    fn say(&self, message: &str);
}

/// What a run is trained for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Purpose {
    /// It stops after so many steps.
    pub max_steps: Option<u64>,
    /// It says where the time of its steps goes.
    pub step_times: bool,
}

/// Measures settings, one after the other.
pub struct Runner {
    /// The settings and the job that each is.
    jobs: Vec<(Setting, Job)>,
    cache: CacheDir,
    trainer: Box<dyn RunTrainer>,
    /// Samples of an epoch, once a run has said so.
    samples: Option<u64>,
    /// Where the time of steps goes, by setting.
    profiles: Vec<(Setting, StepTimes)>,
    /// Other systems, where some are asked for.
    peers: Option<Peers>,
}

/// What a run said, as far as it counts.
#[derive(Default)]
struct Observed {
    samples: u64,
    parameters: u64,
    epochs: Vec<EpochPoint>,
}

impl Runner {
    /// Measures these settings, each with its job.
    pub fn new(jobs: Vec<(Setting, Job)>, cache: CacheDir, trainer: Box<dyn RunTrainer>) -> Runner {
        Runner {
            jobs,
            cache,
            trainer,
            samples: None,
            profiles: Vec::new(),
            peers: None,
        }
    }

    /// Makes other systems ready to train the job.
    ///
    /// # Errors
    /// When they cannot train it, and when what they need cannot be installed.
    pub fn prepare_peers(&mut self, peers: &[Peer]) -> Result<(), MeasureError> {
        let job = self.jobs.first().map(|(_, job)| job);
        let network = job.and_then(|job| Some((job, network(job)?)));
        if let (false, Some(job)) = (peers.is_empty(), network) {
            self.peers = Some(Peers::prepare(peers, job, &self.cache, &*self.trainer)?);
        }
        Ok(())
    }

    /// Measures a setting once. Nothing if somebody asked to stop.
    ///
    /// # Errors
    /// When a run fails.
    pub fn measure(
        &mut self,
        part: Part,
        setting: &Setting,
    ) -> Result<Option<Measured>, MeasureError> {
        let found = self.jobs.iter().find(|(known, _)| known == setting);
        let job = &found.ok_or(MeasureError::Unplanned)?.1;
        match (&setting.how, part) {
            // The gang's warm-up has decoded the data for all.
            (How::Apart, Part::WarmUp) => Ok(Some(Measured::default())),
            (How::Apart, Part::Turn) => self.apart(job, setting),
            (How::Peer(peer), part) => {
                let (Some(peers), Some(network)) = (&self.peers, network(job)) else {
                    return Err(MeasureError::NotReady(*peer));
                };
                let steps = (part == Part::WarmUp).then_some(WARM_UP_STEPS);
                peers.train(*peer, network, setting, steps, &*self.trainer)
            }
            (_, Part::WarmUp) => {
                let purpose = Purpose {
                    max_steps: Some(WARM_UP_STEPS),
                    step_times: false,
                };
                let Some((_, observed)) = self.train(job, purpose)? else {
                    return Ok(None);
                };
                let profile = self.profile(job)?;
                self.samples = Some(observed.samples);
                self.profiles
                    .extend(profile.map(|times| (setting.clone(), times)));
                Ok((!self.trainer.is_stopped()).then(Measured::default))
            }
            (_, Part::Turn) => {
                let Some((result, observed)) = self.train(job, Purpose::default())? else {
                    return Ok(None);
                };
                let profile = self.profiles.iter().find(|(known, _)| known == setting);
                Ok(Some(Measured {
                    step: profile.map(|(_, times)| *times),
                    ..measured(&result, observed)
                }))
            }
        }
    }

    /// Where the time of steps goes; only networks say so.
    fn profile(&self, job: &Job) -> Result<Option<StepTimes>, MeasureError> {
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
    fn apart(&self, job: &Job, setting: &Setting) -> Result<Option<Measured>, MeasureError> {
        let Some(network) = network(job) else {
            return Err(MeasureError::NotApart);
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
                    scope.spawn(move || self.train(job, purpose))
                })
                .collect();
            runs.into_iter().map(|run| run.join()).collect()
        });
        let mut all = Measured::default();
        for ended in ended {
            let Ok(ended) = ended else {
                return Err(MeasureError::Panic);
            };
            let Some((result, _)) = ended? else {
                return Ok(None);
            };
            let one = measured(&result, Observed::default());
            all.training_s = all.training_s.max(one.training_s);
            all.start_s = all.start_s.max(one.start_s);
            all.total_s = all.total_s.max(one.total_s);
            all.samples_per_s += one.samples_per_s;
            all.restarts += one.restarts;
        }
        Ok(Some(all))
    }

    /// Trains once, and removes what was written.
    fn train(
        &self,
        job: &Job,
        purpose: Purpose,
    ) -> Result<Option<(RunResult, Observed)>, MeasureError> {
        let mut observed = Observed::default();
        let mut on_event = |event| observed.observe(event, &*self.trainer);
        let result = self.trainer.train(job, purpose, &mut on_event);
        let result = result.map_err(MeasureError::Train)?;
        if let Some(folder) = &result.run_dir {
            // What cannot be removed now goes with the store.
            let _ = fs::remove_dir_all(folder);
        }
        if self.trainer.is_stopped() {
            return Ok(None);
        }
        match result.status {
            Status::Succeeded => Ok(Some((result, observed))),
            Status::Interrupted if purpose.max_steps.is_some() => Ok(Some((result, observed))),
            _ => {
                let error = result.error;
                let error = error.unwrap_or_else(|| "the run failed".to_owned());
                Err(MeasureError::Run(error))
            }
        }
    }
}

/// What of a job is the network's own, if it trains one.
fn network(job: &Job) -> Option<&NetworkJob> {
    job.network(Path::new("")).ok()
}

impl Observed {
    fn observe(&mut self, event: Event, trainer: &dyn RunTrainer) {
        match event {
            Event::Started(started) => {
                self.samples = started.train_samples as u64;
                self.parameters = started.parameters as u64;
            }
            Event::Epoch(epoch) => self.epochs.push(point(&epoch)),
            Event::Preparing { message } => trainer.say(&message),
            Event::Warning { message } => trainer.say(&format!("warning: {message}")),
            Event::Restart(restart) => trainer.say(&format!("warning: {}", restart.reason)),
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

fn measured(result: &RunResult, observed: Observed) -> Measured {
    let last = observed.epochs.last();
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
        parameters: observed.parameters,
        epochs: observed.epochs,
    }
}
