//! Earlier runs: to go on with, or to begin a new one from.

use crate::EngineError;
use lockstep_events::event::{RunResult, Status};
use lockstep_fs::CacheDir;
use lockstep_job::Job;
use lockstep_runs::{RunDir, RunLock};
use lockstep_train::{ResumePoint, TrainError};
use std::fs;
use std::path::{Path, PathBuf};

/// A run that left a state, and that nobody else trains.
pub(crate) struct Earlier {
    pub(crate) run: RunDir,
    pub(crate) lock: RunLock,
    /// Its newest whole checkpoint.
    pub(crate) checkpoint: PathBuf,
    /// What is wrong with newer ones.
    pub(crate) warnings: Vec<String>,
}

/// The newest whole checkpoint of a run, if it has one, and what is wrong with newer ones.
pub(crate) fn newest_state(run: &RunDir) -> Result<(Option<PathBuf>, Vec<String>), EngineError> {
    let Some(found) = run.checkpoints().newest()? else {
        return Ok((None, Vec::new()));
    };
    let checkpoint = found.checkpoint.path().to_owned();
    let warning = |damaged| {
        let used = checkpoint.display();
        format!("a newer checkpoint cannot be used ({damaged}); going on from {used}")
    };
    let warnings = found.skipped.iter().map(warning).collect();
    Ok((Some(checkpoint), warnings))
}

impl Earlier {
    /// Opens the run in the folder `path`.
    pub(crate) fn open(path: &Path) -> Result<Self, EngineError> {
        let run = RunDir::open(path)?;
        // Locked before its state is looked for: one who goes on with it replaces that.
        let lock = run.lock()?;
        let (checkpoint, warnings) = newest_state(&run)?;
        let checkpoint = checkpoint.ok_or_else(|| EngineError::NotResumable {
            path: path.to_owned(),
        })?;
        Ok(Self {
            warnings,
            run,
            lock,
            checkpoint,
        })
    }

    /// Where `job` goes on.
    pub(crate) fn point(&self, job: &Job, cache: &CacheDir) -> Result<ResumePoint, EngineError> {
        let point = lockstep_train::check_resume(job, &self.checkpoint, cache);
        let point = point.map_err(EngineError::Resume)?;
        // A run that came to its end without saying so, in a power cut, may still do that.
        if point.epochs == job.train.epochs && self.has_succeeded_with(point.epochs) {
            let reason = format!(
                "the run has trained {0} epochs already, and the job asks for {0}; ask for more",
                point.epochs
            );
            return Err(EngineError::Resume(TrainError::Resume {
                path: self.checkpoint.clone(),
                reason,
            }));
        }
        Ok(point)
    }

    fn has_succeeded_with(&self, epochs: u32) -> bool {
        let text = fs::read(self.run.result()).unwrap_or_default();
        let result = serde_json::from_slice::<RunResult>(&text);
        result.is_ok_and(|result| result.status == Status::Succeeded && result.epochs == epochs)
    }

    /// Makes `job` begin in the new run `run` with the weights of this one.
    pub(crate) fn fork(&self, run: &RunDir, job: &mut Job) -> Result<(), EngineError> {
        let weights = run.start();
        lockstep_train::export_weights(&self.checkpoint, &weights).map_err(EngineError::Resume)?;
        job.model.weights = Some(weights);
        Ok(())
    }
}
