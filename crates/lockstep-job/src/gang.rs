//! `[gang]`: how the workers talk to each other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the workers talk to each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Gang {
    /// What carries gradients and weights between workers.
    pub transport: Transport,
    /// Seconds that a worker waits for another before it gives it up.
    pub deadline_s: f64,
}

/// What carries gradients and weights between workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Shared memory where all workers are on one host, else TCP.
    Auto,
    /// Shared memory.
    Shm,
    /// TCP.
    Tcp,
}

impl Default for Gang {
    fn default() -> Self {
        Gang {
            transport: Transport::Auto,
            deadline_s: 30.0,
        }
    }
}
