//! Embedding as a crew: parts that need nothing of each other, made by whoever is idle.
//!
//! The coordinator lists the pictures, looks which parts are there already, and hands the others out. It
//! keeps nothing of its own: the finished parts are the record. So whenever it is killed, the next run
//! finds what is missing in the same way.

use super::tasks::{self, TaskEvent, Work};
use crate::{EngineError, StopFlag};
use lockstep_embed::{
    EmbedError, Finished, Inventory, Model, PartTask, Recipe, Skipped, Studio, check_share, find,
    part_name, write_list,
};
use lockstep_job::{DataRef, Embed, Job, Validation};
use lockstep_place::{Access, Place};
use lockstep_train::event::{Embedded, Embedding, Event, LogLine, Restart};
use lockstep_train::{access, embedded_sets};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// The name of this work among those that task workers do.
pub const KIND: &str = "embed pictures";
/// Footers that are looked at together, since a store answers each one late.
const AT_ONCE: usize = 16;
/// How often progress is told at most.
const TELL_EVERY: Duration = Duration::from_millis(250);

/// What to embed.
#[derive(Debug)]
pub struct EmbedRequest<'a> {
    /// The job, checked and complete. One without an `[embed]` section has nothing to embed.
    pub job: &'a Job,
    /// The program whose `task-worker` command is a worker; usually this process's own.
    pub worker_exe: PathBuf,
    /// Raised by whoever wants the work to end early.
    pub stop: StopFlag,
}

/// What all parts have in common, for the workers.
#[derive(Serialize, Deserialize)]
struct Setup {
    recipe: Recipe,
    batch: usize,
    memory: u64,
    access: Access,
}

/// One part, for the worker that makes it.
#[derive(Serialize, Deserialize)]
struct Order {
    folder: String,
    store: String,
    part: PartTask,
}
