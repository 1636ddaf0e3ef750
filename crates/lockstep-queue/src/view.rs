//! A job as whoever asks is told of it.

use crate::{JobStatus, Needs};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A job as whoever asks is told of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobView {
    /// Its id.
    pub id: String,
    /// Jobs are numbered in the order in which they came.
    pub number: u64,
    /// Who asked for it.
    pub user: String,
    /// How it is.
    pub status: JobStatus,
    /// The same in words; of a failure, with the end of the log.
    pub message: String,
    /// What kind of failure it was, in Ray's words.
    pub error_type: Option<String>,
    /// The command, as a shell reads it.
    pub entrypoint: String,
    /// Its package, modules and variables, in Ray's words. Variables may be secrets.
    pub runtime_env: BTreeMap<String, Value>,
    /// What whoever submitted it wrote down.
    pub metadata: BTreeMap<String, String>,
    /// What it needs of the machine.
    pub needs: Needs,
    /// The GPUs that it has.
    pub gpus: Vec<u32>,
    /// A job of a higher one begins first.
    pub priority: i64,
    /// Jobs that must have succeeded before it begins.
    pub after: Vec<String>,
    /// When it was submitted, in milliseconds since 1970.
    pub submitted_ms: u64,
    /// When its command was started, the last time.
    pub started_ms: Option<u64>,
    /// When it ended.
    pub ended_ms: Option<u64>,
    /// Which attempt this is, from 1 on.
    pub attempt: u32,
    /// How many attempts there may be.
    pub attempts: u32,
    /// What the command ended with, the last time; 128 and the number of the signal that ended it.
    pub exit_code: Option<i32>,
    /// The process of its command, which is also its process group.
    pub pid: Option<u32>,
    /// Whether it was asked to stop.
    pub stopping: bool,
    /// How many jobs begin before it, if it waits.
    pub position: Option<usize>,
}
