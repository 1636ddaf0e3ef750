//! What the worker of a script is told.

use crate::sets::ScriptSets;
use lockstep_place::Access;
use lockstep_resolve::{ResolvedScript, ScriptSettings};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// All that the worker of a script is told, beside its place in the gang.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ScriptPart {
    /// What is started.
    pub(crate) settings: ScriptSettings,
    /// The run's name.
    pub(crate) run: String,
    /// Where the script starts: the job file's folder.
    pub(crate) folder: PathBuf,
    /// How the run's places are reached.
    pub(crate) access: Access,
    /// The sets that the script may ask for.
    pub(crate) sets: ScriptSets,
}

impl ScriptPart {
    /// Of a job whose run has this name, started in `folder`.
    pub fn new(resolved: &ResolvedScript, sets: ScriptSets, run: &str, folder: PathBuf) -> Self {
        Self {
            settings: resolved.settings.clone(),
            run: run.to_owned(),
            folder,
            access: resolved.access.clone(),
            sets,
        }
    }
}
