//! Earlier runs: to go on with, or to begin a new one from.

use crate::EngineError;
use lockstep_learner::EarlierRun;
use lockstep_place::Place;
use lockstep_runs::checkpoint::Checkpoint;
use lockstep_runs::{RunDir, RunLock, RunsError};

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

    /// The run as a learner sees it.
    pub(crate) fn run(&self) -> EarlierRun<'_> {
        EarlierRun {
            run: &self.run,
            checkpoint: &self.checkpoint,
            step: self.step,
        }
    }
}
