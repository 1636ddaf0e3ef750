//! What is known of a model that is served.

use crate::takes::Takes;
use lockstep_model::Outputs;

/// What is known of a model that is served.
#[derive(Debug)]
pub(crate) struct About {
    /// The name of the model, or of the run.
    pub(crate) name: String,
    /// The number of the version; none of a run.
    pub(crate) version: Option<u64>,
    /// What tells its files from those of every other version.
    pub(crate) files: String,
    /// What it takes.
    pub(crate) takes: Takes,
    /// What it says.
    pub(crate) outputs: Outputs,
}

impl About {
    /// As people write it: `digits@3`, or the name of a run.
    pub(crate) fn title(&self) -> String {
        match self.version {
            Some(version) => format!("{}@{version}", self.name),
            None => self.name.clone(),
        }
    }
}
