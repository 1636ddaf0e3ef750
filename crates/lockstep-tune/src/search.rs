//! A search as it goes on: trials are trained round after round, and what is known is written after each.
//!
//! A trial is a run of the job's store, under a name that is known before: so one that was killed is gone on with.
//! How a run is trained is for a [`Trainer`] to know.

use crate::trial::reached;
use crate::{BEST, REPORT, Reached, Round, Rules, SearchError, TUNING, Trial, Tuning};
use lockstep_events::event::{RunResult, Status};
use lockstep_place::Place;
use lockstep_runs::RunDir;
use std::sync::Mutex;
use std::sync::mpsc;
use std::thread;

/// How far a trial is trained.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// So many epochs.
    pub epochs: u32,
    /// Whether these are all epochs of the job.
    pub is_last: bool,
    /// What it is measured by then.
    pub metric: &'a str,
    /// Whether more of it is better.
    pub maximise: bool,
}

/// Trains the trials of a search.
pub trait Trainer: Sync {
    /// What can go wrong.
    type Error: From<SearchError> + Send;

    /// Trains a trial up to the target, from wherever its run is; how that ended.
    ///
    /// # Errors
    /// When it cannot begin.
    fn train(
        &self,
        run: &RunDir,
        trial: &Trial,
        target: &Target<'_>,
    ) -> Result<RunResult, Self::Error>;

    /// The job file of a trial.
    ///
    /// # Errors
    /// When the trial's values make no job.
    fn job_file(&self, trial: &Trial) -> Result<String, Self::Error>;

    /// Told of each trial that has come to its target.
    fn done(&self, trial: &Trial);

    /// Whether somebody asked to stop.
    fn is_stopped(&self) -> bool;

    /// Asks everything to end in good order.
    fn stop(&self);
}

/// What training a trial to a rung came to.
enum TrialEnd {
    Reached(Reached),
    Failed(String),
    Stopped,
}

/// A search in its folder.
#[derive(Debug)]
pub struct Search {
    /// What is known.
    pub tuning: Tuning,
    /// Where it is kept.
    pub folder: Place,
    store: Place,
}

impl Search {
    /// A new search in a folder of its own, or the one that is to be gone on with: by its name, or the job's newest.
    ///
    /// # Errors
    /// When there is no such search, or it is one with other rules.
    pub fn open(
        store: &Place,
        job: &str,
        rules: Rules,
        resume: Option<Option<String>>,
    ) -> Result<Self, SearchError> {
        let prefix = format!("tune-{job}");
        let name = match resume {
            None => {
                let name = RunDir::new_name(&prefix)?;
                return Ok(Self {
                    folder: store.join(&name)?,
                    tuning: Tuning::new(name, rules)?,
                    store: store.clone(),
                });
            }
            Some(Some(name)) => name,
            Some(None) => newest(store, &prefix)?,
        };
        let folder = store.join(&name)?;
        let text = folder.join(TUNING)?.read();
        let text = text.map_err(|source| SearchError::NoSearch {
            name,
            store: store.to_string(),
            source: Box::new(source),
        })?;
        let tuning: Tuning =
            serde_json::from_slice(&text).map_err(|source| SearchError::Damaged {
                path: format!("{folder}/{TUNING}"),
                source,
            })?;
        Ok(Self {
            tuning: tuning.checked(&rules, &folder.to_string())?,
            folder,
            store: store.clone(),
        })
    }

    /// Trains round after round, so many trials at a time.
    ///
    /// # Errors
    /// When a trial cannot begin, or what is known cannot be written. What was tried before is kept.
    pub fn run<T: Trainer>(&mut self, trainer: &T, parallel: usize) -> Result<(), T::Error> {
        self.save()?;
        while let Some(round) = self.tuning.next_round() {
            self.save()?;
            self.round(trainer, &round, parallel)?;
            if trainer.is_stopped() {
                break;
            }
        }
        if let Some(best) = self.tuning.best() {
            let text = trainer.job_file(best)?;
            self.write(BEST, text.as_bytes())?;
        }
        Ok(self.write(REPORT, self.tuning.html().as_bytes())?)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), SearchError> {
        Ok(self.folder.join(name)?.write(bytes)?)
    }

    fn save(&self) -> Result<(), SearchError> {
        self.folder.make_folder()?;
        let text = serde_json::to_string_pretty(&self.tuning).map_err(SearchError::Json)?;
        self.write(TUNING, text.as_bytes())
    }

    /// Trains all trials of a round, so many at a time.
    fn round<T: Trainer>(
        &mut self,
        trainer: &T,
        round: &Round,
        parallel: usize,
    ) -> Result<(), T::Error> {
        let trials: Vec<Trial> = round
            .trials
            .iter()
            .map(|number| self.tuning.trials[*number].clone())
            .collect();
        let metric = self.tuning.rules.metric.clone();
        let names: Vec<String> = trials
            .iter()
            .map(|trial| self.tuning.run_name(trial.number))
            .collect();
        let store = self.store.clone();
        let target = Target {
            epochs: round.epochs,
            is_last: round.rung + 1 == self.tuning.rules.rungs.len(),
            metric: &metric,
            maximise: self.tuning.rules.maximise,
        };
        let waiting = Mutex::new(trials.iter().zip(&names));
        let (sender, ended) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..parallel.min(trials.len()) {
                let (sender, waiting, store) = (sender.clone(), &waiting, &store);
                scope.spawn(move || {
                    loop {
                        // The lock is never poisoned: no holder panics.
                        let next = waiting.lock().ok().and_then(|mut waiting| waiting.next());
                        let Some((trial, run)) = next.filter(|_| !trainer.is_stopped()) else {
                            return;
                        };
                        let ended = train(trainer, store, run, trial, &target);
                        if sender.send((trial.number, ended)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            let mut first_error = None;
            for (number, ended) in ended {
                let trial = &mut self.tuning.trials[number];
                match ended {
                    Ok(TrialEnd::Reached(reached)) => trial.reached.push(reached),
                    Ok(TrialEnd::Failed(why)) => trial.failed = Some(why),
                    Ok(TrialEnd::Stopped) => continue,
                    Err(error) => {
                        // What cannot begin here cannot begin elsewhere: the others end in good order.
                        trainer.stop();
                        first_error.get_or_insert(error);
                        continue;
                    }
                }
                trainer.done(trial);
                self.save()?;
            }
            first_error.map_or(Ok(()), Err)
        })
    }
}

/// Trains a trial up to so many epochs, from wherever its run is.
fn train<T: Trainer>(
    trainer: &T,
    store: &Place,
    name: &str,
    trial: &Trial,
    target: &Target<'_>,
) -> Result<TrialEnd, T::Error> {
    let place = store.join(name).map_err(SearchError::from)?;
    let run = RunDir::named(name, place);
    if let Some(reached) = reached(&run, target)? {
        return Ok(TrialEnd::Reached(reached));
    }
    let result = trainer.train(&run, trial, target)?;
    if let Some(reached) = reached(&run, target)? {
        return Ok(TrialEnd::Reached(reached));
    }
    match (result.status, trainer.is_stopped()) {
        (Status::Failed, _) => Ok(TrialEnd::Failed(
            result.error.unwrap_or_else(|| "the run failed".to_owned()),
        )),
        (_, true) => Ok(TrialEnd::Stopped),
        (_, false) => Err(SearchError::EndedEarly {
            number: trial.number,
            epochs: target.epochs,
        }
        .into()),
    }
}

/// The newest search of the job: names end with their time.
fn newest(store: &Place, prefix: &str) -> Result<String, SearchError> {
    let mut newest = None;
    for name in store.folders()? {
        let is_ours =
            name.starts_with(prefix) && store.join(&name)?.join(TUNING)?.entry()?.is_some();
        if is_ours && newest.as_ref().is_none_or(|known| name > *known) {
            newest = Some(name);
        }
    }
    newest.ok_or_else(|| SearchError::NoneOfJob {
        store: store.to_string(),
    })
}
