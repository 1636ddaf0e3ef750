//! Earlier runs: to go on with, or to begin a new one from.

use crate::EngineError;
use lockstep_base::fs::CacheDir;
use lockstep_events::event::{RunResult, Status};
use lockstep_place::Place;
use lockstep_resolve::TrainingSettings;
use lockstep_runs::checkpoint::Checkpoint;
use lockstep_runs::{RunDir, RunLock, RunsError};
use lockstep_train::{ForkFrom, FoundSets, ResumePoint, TrainError};
use std::path::PathBuf;

/// A run that left a state, and that nobody else trains.
pub(crate) struct Earlier {
    pub(crate) run: RunDir,
    pub(crate) lock: RunLock,
    /// Its newest whole checkpoint.
    pub(crate) checkpoint: Place,
    /// Steps that were done by then.
    pub(crate) step: u64,
    /// What is wrong with newer ones.
    pub(crate) warnings: Vec<String>,
}

/// The newest whole checkpoint of a run, if it has one, and what is wrong with newer ones.
fn newest_state(run: &RunDir) -> Result<(Option<Checkpoint>, Vec<String>), EngineError> {
    let Some(found) = run.checkpoints().newest()? else {
        return Ok((None, Vec::new()));
    };
    let used = found.checkpoint.place();
    let warning =
        |damaged| format!("a newer checkpoint cannot be used ({damaged}); going on from {used}");
    let warnings = found.skipped.iter().map(warning).collect();
    Ok((Some(found.checkpoint), warnings))
}

/// Where a generation of the gang begins.
pub(crate) struct GenerationStart {
    /// The checkpoint to go on from, if not from the beginning.
    pub(crate) checkpoint: Option<String>,
    /// Steps that were done by then.
    pub(crate) step: u64,
    /// What is wrong with newer ones.
    pub(crate) warnings: Vec<String>,
    /// Under which the gang writes.
    pub(crate) incarnation: String,
}

/// Finds where the generation begins, and makes it the only one that writes.
pub(crate) fn begin_generation(
    run: &RunDir,
    lock: &RunLock,
    generation: u16,
) -> Result<GenerationStart, EngineError> {
    let (checkpoint, warnings) = newest_state(run)?;
    let writing = lock.begin(generation, checkpoint.as_ref())?;
    Ok(GenerationStart {
        step: checkpoint.as_ref().map_or(0, Checkpoint::step),
        checkpoint: checkpoint.map(|checkpoint| checkpoint.place().to_string()),
        warnings,
        incarnation: writing.incarnation,
    })
}

impl Earlier {
    /// Opens the run at `place`. If it may take a while until it is free, `waiting` is told so.
    pub(crate) fn open(
        place: &Place,
        waiting: &mut dyn FnMut(String),
    ) -> Result<Self, EngineError> {
        let earlier = Self::of(RunDir::open(place)?, waiting)?;
        earlier.ok_or_else(|| EngineError::NotResumable {
            run: place.to_string(),
        })
    }

    /// Opens the run of this name in `store`; nothing if there is none, or it has left no state.
    pub(crate) fn named(
        store: &Place,
        name: &str,
        waiting: &mut dyn FnMut(String),
    ) -> Result<Option<Self>, EngineError> {
        let run = RunDir::named(name, store.join(name).map_err(RunsError::from)?);
        match run.job().entry().map_err(RunsError::from)? {
            Some(_) => Self::of(run, waiting),
            None => Ok(None),
        }
    }

    fn of(run: RunDir, waiting: &mut dyn FnMut(String)) -> Result<Option<Self>, EngineError> {
        // Locked before its state is looked for: one who goes on with it replaces that.
        let lock = run.lock(waiting)?;
        let (checkpoint, warnings) = newest_state(&run)?;
        Ok(checkpoint.map(|checkpoint| Self {
            warnings,
            run,
            lock,
            step: checkpoint.step(),
            checkpoint: checkpoint.place().clone(),
        }))
    }

    /// Where training with `settings` goes on.
    pub(crate) fn point(
        &self,
        settings: &TrainingSettings,
        found: &FoundSets,
    ) -> Result<ResumePoint, EngineError> {
        let point = lockstep_train::check_resume(settings, &self.checkpoint, found);
        let point = point.map_err(EngineError::Resume)?;
        // A run that came to its end without saying so, in a power cut, may still do that.
        if point.epochs == settings.learner.epochs && self.has_succeeded_with(point.epochs) {
            let reason = format!(
                "the run has trained {0} epochs already, and the job asks for {0}; ask for more",
                point.epochs
            );
            return Err(EngineError::Resume(TrainError::Resume {
                path: self.checkpoint.to_string().into(),
                reason,
            }));
        }
        Ok(point)
    }

    pub(crate) fn has_succeeded_with(&self, epochs: u32) -> bool {
        let text = self.run.result().read().unwrap_or_default();
        let result = serde_json::from_slice::<RunResult>(&text);
        result.is_ok_and(|result| result.status == Status::Succeeded && result.epochs == epochs)
    }

    /// Where the run goes on, in words.
    pub(crate) fn goes_on(&self, point: &ResumePoint, steps_per_epoch: u64) -> String {
        let (epochs, step) = (point.epochs, point.step);
        let inside = step.saturating_sub(u64::from(epochs) * steps_per_epoch);
        let place = match inside {
            0 => format!("after epoch {epochs}"),
            _ => format!(
                "at step {inside} of {steps_per_epoch} in epoch {}",
                epochs + 1
            ),
        };
        format!("going on with {} {place}, {step} steps done", self.run.name)
    }

    /// Writes weights of this run into the new run `run`, and returns the file to begin with and what it is in words.
    pub(crate) fn fork(
        &self,
        which: ForkFrom,
        run: &RunDir,
        cache: &CacheDir,
    ) -> Result<(PathBuf, String), EngineError> {
        let weights = run.start();
        let best = lockstep_train::export_weights(&self.checkpoint, which, &weights)
            .map_err(EngineError::Resume)?;
        let name = &self.run.name;
        let words = match best {
            Some(epoch) => format!("beginning with the weights that {name} kept, of epoch {epoch}"),
            None => format!(
                "beginning with the last weights of {name}, of step {}",
                self.step
            ),
        };
        Ok((self.local_start(run, &weights, cache)?, words))
    }

    /// The file of this machine that the new run `run` begins with.
    fn local_start(
        &self,
        run: &RunDir,
        weights: &Place,
        cache: &CacheDir,
    ) -> Result<PathBuf, EngineError> {
        match weights.local() {
            Some(path) => Ok(path.to_owned()),
            // Weights to begin with are read from a file of this machine.
            None => {
                let name = format!("{}.safetensors", run.name);
                let path = cache.folder("starts")?.join(name);
                let bytes = weights.read().map_err(RunsError::from)?;
                lockstep_base::fs::write_atomic(&path, &bytes)?;
                Ok(path)
            }
        }
    }
}
