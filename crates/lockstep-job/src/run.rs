//! `[run]`: where the run goes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where the run goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// The folder in which every run makes a folder of its own.
    pub store: PathBuf,
}

impl Default for Run {
    fn default() -> Self {
        Run {
            store: PathBuf::from("runs"),
        }
    }
}
