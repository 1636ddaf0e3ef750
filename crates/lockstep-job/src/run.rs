//! `[run]`: where the run goes.

use crate::Location;
use crate::keys::FromField;
use crate::section::Section;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Where the run goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// The folder in which every run makes a folder of its own: a path, or a URL such as `s3://bucket/runs`.
    pub store: Location,
}

impl Default for Run {
    fn default() -> Self {
        Run {
            store: Location::new("runs"),
        }
    }
}

impl Run {
    /// What holds for a job file in `folder` that says nothing.
    pub(crate) fn default_in(folder: &Path) -> Run {
        Run {
            store: Location::new(folder.join(Run::default().store.as_str()).to_string_lossy()),
        }
    }

    pub(crate) fn read(mut section: Section<'_>) -> Option<Run> {
        let default = Run::default_in(section.folder());
        let store = section.or("store", default.store, |field| Location::from_field(&field));
        section.finish();
        Some(Run { store: store? })
    }
}
