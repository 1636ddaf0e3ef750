//! `[gang]`: how the workers talk to each other.

use crate::field::Rule;
use crate::section::Section;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the workers talk to each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Gang {
    /// What carries gradients and weights between workers.
    pub transport: Transport,
    /// Seconds that a worker waits for another before it gives it up.
    #[schemars(extend("exclusiveMinimum" = 0))]
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

impl Gang {
    pub(crate) fn read(mut section: Section<'_>) -> Option<Gang> {
        let default = Gang::default();
        let transport = section.or("transport", default.transport, |field| {
            let word = field.one_of(&["auto", "shm", "tcp"])?;
            Some(match word {
                "shm" => Transport::Shm,
                "tcp" => Transport::Tcp,
                _ => Transport::Auto,
            })
        });
        let deadline_s = section.or("deadline_s", default.deadline_s, |field| {
            field.number(Rule::SECONDS)
        });
        section.finish();
        Some(Gang {
            transport: transport?,
            deadline_s: deadline_s?,
        })
    }
}
