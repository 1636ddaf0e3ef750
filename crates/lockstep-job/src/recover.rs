//! `[recover]`: what happens when a worker is lost.

use crate::section::Section;
use crate::train::MAX_WORKERS;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Few enough that the number of a generation, of which each restart makes a new one, never runs out.
const MAX_RESTARTS: u32 = 10_000;

/// What happens when a worker is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Recover {
    /// How often a run begins again from its newest state before it fails.
    #[schemars(range(max = 10_000))]
    pub max_restarts: u32,
    /// How few workers a run goes on with when lost ones cannot be replaced.
    #[schemars(range(min = 1))]
    pub min_workers: usize,
}

impl Default for Recover {
    fn default() -> Self {
        Recover {
            max_restarts: 3,
            min_workers: 1,
        }
    }
}

impl Recover {
    pub(crate) fn read(mut section: Section<'_>) -> Option<Recover> {
        let default = Recover::default();
        let max_restarts = section.or("max_restarts", default.max_restarts, |field| {
            field.integer(0..=MAX_RESTARTS)
        });
        let min_workers = section.or("min_workers", default.min_workers, |field| {
            field.integer(1..=MAX_WORKERS)
        });
        section.finish();
        Some(Recover {
            max_restarts: max_restarts?,
            min_workers: min_workers?,
        })
    }
}
