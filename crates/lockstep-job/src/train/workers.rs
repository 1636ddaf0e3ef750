//! `train.workers`: so many, or as many as there are between two numbers.

use super::MAX_WORKERS;
use crate::field::Field;
use crate::keys::{Check, FromField, Table, Within, keys};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many worker processes a run has. In the job file one number stands for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "WorkersKeys", into = "WorkersKeys")]
pub struct Workers {
    /// With so many it begins, and takes in others when they come.
    pub min: usize,
    /// It never has more.
    pub max: usize,
}

impl Workers {
    /// Always so many.
    pub const fn exactly(workers: usize) -> Self {
        Self {
            min: workers,
            max: workers,
        }
    }

    /// Whether the number may change while the run goes on.
    pub fn is_elastic(self) -> bool {
        self.min < self.max
    }
}

impl FromField for Workers {
    fn from_field(field: &Field<'_>) -> Option<Workers> {
        if !field.is_table() {
            return Some(Workers::exactly(field.integer(1..=MAX_WORKERS)?));
        }
        let WorkersRange { min, max } = Table(WorkersRange::read_keys).read(field)?;
        match min <= max {
            true => Some(Workers { min, max }),
            false => field.reject(
                format!("has `min` {min} and `max` {max}"),
                "`min` must not be larger than `max`",
            ),
        }
    }
}

keys! {
    /// As many workers as there are between two numbers.
    pub struct WorkersRange (Eq) {
        /// With so many the run begins, and takes in others when they come.
        min: usize = default(1) => Within(1..=MAX_WORKERS);
        /// It never has more.
        max: usize = need("add `max = 8`, the most workers there may be") => Within(1..=MAX_WORKERS);
    }
}

/// [`Workers`] as the job file writes them.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum WorkersKeys {
    /// Always so many.
    Exactly(usize),
    /// As many as there are.
    Range(WorkersRange),
}

impl From<WorkersKeys> for Workers {
    fn from(keys: WorkersKeys) -> Self {
        match keys {
            WorkersKeys::Exactly(workers) => Workers::exactly(workers),
            WorkersKeys::Range(WorkersRange { min, max }) => Workers { min, max },
        }
    }
}

impl From<Workers> for WorkersKeys {
    fn from(workers: Workers) -> Self {
        let Workers { min, max } = workers;
        match workers.is_elastic() {
            false => Self::Exactly(max),
            true => Self::Range(WorkersRange { min, max }),
        }
    }
}
