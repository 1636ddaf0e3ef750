//! How a job is, in Ray's words: those of a head, and those of our own queue.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum JobStatus {
    /// It waits, or what it runs in is being made.
    Pending,
    /// Its command runs.
    Running,
    /// It was asked to stop, and did.
    Stopped,
    /// Its command ended with 0.
    Succeeded,
    /// Its command ended with something else, or could not be run.
    Failed,
    /// What a later version of Ray may say; not an end.
    #[serde(other)]
    Unknown,
}

impl JobStatus {
    /// Whether it stays so.
    pub fn is_final(self) -> bool {
        matches!(
            self,
            JobStatus::Stopped | JobStatus::Succeeded | JobStatus::Failed
        )
    }

    /// As Ray writes it. Where people read it, it is displayed in small letters.
    pub fn in_capitals(self) -> &'static str {
        match self {
            JobStatus::Pending => "PENDING",
            JobStatus::Running => "RUNNING",
            JobStatus::Stopped => "STOPPED",
            JobStatus::Succeeded => "SUCCEEDED",
            JobStatus::Failed => "FAILED",
            JobStatus::Unknown => "UNKNOWN",
        }
    }
}

impl fmt::Display for JobStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_capitals().to_ascii_lowercase())
    }
}
