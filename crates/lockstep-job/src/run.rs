//! `[run]`: where the run goes.

use crate::section::Section;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

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

impl Run {
    /// What holds for a job file in `folder` that says nothing.
    pub(crate) fn default_in(folder: &Path) -> Run {
        Run {
            store: folder.join(Run::default().store),
        }
    }

    pub(crate) fn read(mut section: Section<'_>) -> Option<Run> {
        let default = Run::default_in(section.folder());
        let store = section.or("store", default.store, |field| field.path());
        section.finish();
        Some(Run { store: store? })
    }
}
