//! `train.schedule`: how the learning rate changes over the run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the learning rate changes over the run. Every kind may begin with a linear warm-up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Schedule {
    /// It stays as it is.
    Constant {
        /// Steps over which it first rises from 0.
        #[serde(default)]
        warmup_steps: u64,
    },
    /// It is multiplied by `gamma` every few epochs.
    Step {
        /// Epochs between two changes.
        every_epochs: u32,
        /// What it is multiplied by.
        gamma: f64,
        /// Steps over which it first rises from 0.
        #[serde(default)]
        warmup_steps: u64,
    },
    /// It falls along half a cosine.
    Cosine {
        /// Where it ends.
        #[serde(default)]
        min_lr: f64,
        /// Steps until it ends there, warm-up included; if left out, those of the whole run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        steps: Option<u64>,
        /// Steps over which it first rises from 0.
        #[serde(default)]
        warmup_steps: u64,
    },
}

impl Default for Schedule {
    fn default() -> Self {
        Schedule::Constant { warmup_steps: 0 }
    }
}

impl Schedule {
    /// Steps over which the learning rate first rises from 0.
    pub fn warmup_steps(&self) -> u64 {
        match self {
            Schedule::Constant { warmup_steps }
            | Schedule::Step { warmup_steps, .. }
            | Schedule::Cosine { warmup_steps, .. } => *warmup_steps,
        }
    }
}
