//! What the worker of a script is told.

use crate::sets::ScriptSets;
use lockstep_job::{Job, ScriptCheckpoint, ScriptJob, ScriptTraining};
use lockstep_place::Access;
use lockstep_resolve::ResolvedScript;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// All that the worker of a script is told, beside its place in the gang.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ScriptPart {
    /// The job's name.
    pub(crate) job: String,
    /// The run's name.
    pub(crate) run: String,
    /// The keys of `[train]`.
    pub(crate) train: ScriptTraining,
    /// The keys of `[checkpoint]`.
    pub(crate) checkpoint: ScriptCheckpoint,
    /// How often the gang may begin again.
    pub(crate) max_restarts: u32,
    /// Where the script starts: the job file's folder.
    pub(crate) folder: PathBuf,
    /// How the run's places are reached.
    pub(crate) access: Access,
    /// The sets that the script may ask for.
    pub(crate) sets: ScriptSets,
}

impl ScriptPart {
    /// Of a job whose run has this name, started in `folder`.
    pub fn new(
        job: &Job,
        script: &ScriptJob,
        resolved: &ResolvedScript,
        sets: ScriptSets,
        run: &str,
        folder: PathBuf,
    ) -> Self {
        Self {
            job: job.name.clone(),
            run: run.to_owned(),
            train: script.train.clone(),
            checkpoint: script.checkpoint.clone(),
            max_restarts: job.recover.max_restarts,
            folder,
            access: resolved.access.clone(),
            sets,
        }
    }
}
