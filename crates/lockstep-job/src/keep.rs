//! `run.keep`: how many of a job's runs stay.

use crate::field::Field;
use crate::keys::{Check, FromField, Table, keys};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// More than any disk holds of anything worth keeping.
const MAX_RUNS: usize = 1_000_000;
/// A century.
const MAX_DAYS: u32 = 36_500;

/// Which runs of a job stay when one has ended. A run stays if any of these keeps it. In the job file one number
/// stands for the newest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "KeepKeys", into = "KeepKeys")]
pub struct Keep {
    /// So many that began last.
    pub newest: Option<usize>,
    /// Those that began within so many days.
    pub days: Option<u32>,
    /// So many that are best.
    pub best: Option<usize>,
    /// The metric that decides which are best.
    pub by: Option<String>,
}

keys! {
    /// Which runs of a job stay when one has ended. A run stays if any of these keeps it.
    pub struct KeepRules (Eq) {
        /// So many that began last.
        newest: Option<usize> = optional => 1..=MAX_RUNS;
        /// Those that began within so many days.
        days: Option<u32> = optional => 1..=MAX_DAYS;
        /// So many that are best, by the metric `by`.
        best: Option<usize> = optional => 1..=MAX_RUNS;
        /// The metric that decides which are best, such as `"accuracy"` or `"val.loss"`.
        by: Option<String> = optional => crate::keys::Any;
    }
}

impl FromField for Keep {
    fn from_field(field: &Field<'_>) -> Option<Keep> {
        if !field.is_table() {
            return Some(Keep::newest(field.integer(1..=MAX_RUNS)?));
        }
        let rules: KeepRules = Table(KeepRules::read_keys).read(field)?;
        let keep = Keep::from(KeepKeys::Rules(rules));
        match (&keep, keep.best.is_some() == keep.by.is_some()) {
            (_, false) => field.reject(
                "needs `best` and `by` together",
                "such as { best = 5, by = \"accuracy\" }",
            ),
            (
                Keep {
                    newest: None,
                    days: None,
                    best: None,
                    ..
                },
                _,
            ) => field.reject("keeps nothing", "such as 20 or { days = 30 }"),
            _ => Some(keep),
        }
    }
}

impl Keep {
    /// So many that began last.
    pub fn newest(runs: usize) -> Keep {
        Keep {
            newest: Some(runs),
            days: None,
            best: None,
            by: None,
        }
    }
}

/// [`Keep`] as the job file writes it.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum KeepKeys {
    /// The newest.
    Newest(usize),
    /// As rules say.
    Rules(KeepRules),
}

impl From<KeepKeys> for Keep {
    fn from(keys: KeepKeys) -> Self {
        match keys {
            KeepKeys::Newest(runs) => Keep::newest(runs),
            KeepKeys::Rules(KeepRules {
                newest,
                days,
                best,
                by,
            }) => Keep {
                newest,
                days,
                best,
                by,
            },
        }
    }
}

impl From<Keep> for KeepKeys {
    fn from(keep: Keep) -> Self {
        match keep {
            Keep {
                newest: Some(runs),
                days: None,
                best: None,
                ..
            } => KeepKeys::Newest(runs),
            Keep {
                newest,
                days,
                best,
                by,
            } => KeepKeys::Rules(KeepRules {
                newest,
                days,
                best,
                by,
            }),
        }
    }
}
