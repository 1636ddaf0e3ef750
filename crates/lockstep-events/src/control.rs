//! What the coordinator and a worker say to each other over the control link.
//!
//! Numbers that decide the result never pass here: workers agree on those among themselves through
//! the gang's collectives. The coordinator starts, listens, stops and reports.

use crate::event::{EpochResult, Progress, Reported, StepTimes};
use crate::{Metrics, TraceLine};
use lockstep_measure::Summary;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A worker's place in the gang and all it needs to know to begin.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Assignment {
    /// The name of what learns.
    pub kind: String,
    /// What the learner needs to begin; only it reads this.
    pub learner: Value,
    /// Where the run lies, a path or a URL; rank 0 writes what was learned there.
    pub run_dir: String,
    /// The coordinator's incarnation, under which this generation writes checkpoints.
    pub incarnation: String,
    /// This worker's rank.
    pub rank: usize,
    /// Number of workers.
    pub workers: usize,
    /// The generation of the gang: 1 until a worker is replaced.
    pub generation: u16,
    /// How the workers reach each other.
    pub transport: Transport,
    /// How long a worker waits for a peer before it calls it lost.
    pub deadline_s: f64,
    /// A state to go on from: the folder of a checkpoint.
    pub resume: Option<String>,
    /// Steps after which the run stops by itself, as if asked to.
    pub max_steps: Option<u64>,
    /// Whether to measure where the time of steps goes.
    #[serde(default)]
    pub step_times: bool,
    /// Of which steps a profile is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfiledSteps>,
    /// How many steps were done when the generation before was lost: until then, work is repeated.
    #[serde(default)]
    pub catch_up: u64,
    /// Where the state is copied to, so that no step is repeated if a worker is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<CopyPlace>,
}

/// Where the state is copied to, and which copy a generation goes on from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyPlace {
    /// The memory.
    pub memory: CopyMemory,
    /// The copy to go on from, in place of a checkpoint.
    pub from: Option<StateCopy>,
    /// Whether every step is copied, whatever that costs.
    pub every_step: bool,
}

/// Memory for copies of the state, which outlives a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CopyMemory {
    /// Memory that all workers share, and the coordinator with them.
    Shared {
        /// The descriptor's number in the worker.
        fd: i32,
        /// Where in it the copies begin.
        at: usize,
    },
    /// The workers' own: what a rank copies, another one keeps too.
    Processes {
        /// The rank that keeps for each; empty for a gang of one.
        keepers: Vec<usize>,
    },
}

/// One of the copies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateCopy {
    /// Which of the two it is.
    pub number: usize,
    /// Steps that were done.
    pub step: u64,
    /// What tells it from others with that number.
    pub stamp: u64,
    /// By the rank that wrote a share of it, the present rank whose process holds that share. Empty where all share memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<usize>,
}

/// Steps of which a profile is made: what each thread did, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfiledSteps {
    /// The first, counted from 1.
    pub first: u64,
    /// The last.
    pub last: u64,
    /// Times count from here, in microseconds since 1970: so those of all machines fit each other.
    pub since_us: u64,
}

/// How the workers of a gang exchange what they compute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Transport {
    /// One worker: nothing to exchange.
    Solo,
    /// None of ours: the learner exchanges in its own way.
    Own,
    /// A shared memory segment, inherited as this file descriptor.
    Shm {
        /// The descriptor's number in the worker.
        fd: i32,
    },
    /// TCP connections between all pairs.
    Tcp {
        /// How each rank is reached and recognised, by rank. Only the gang reads this; it holds the
        /// keys that this worker has in common with each other one, in this generation alone.
        peers: Value,
        /// Whether what they exchange is encrypted.
        encrypt: bool,
    },
    /// Shared memory within each host, and TCP connections between hosts.
    Hosts {
        /// How many workers each host has, in the order of their ranks.
        hosts: Vec<usize>,
        /// As over TCP.
        peers: Value,
        /// Whether what hosts exchange is encrypted.
        encrypt: bool,
    },
}

impl Transport {
    /// How many workers each host has, where that decides who exchanges what with whom.
    pub fn hosts(&self) -> Option<&[usize]> {
        match self {
            Self::Hosts { hosts, .. } => Some(hosts),
            _ => None,
        }
    }
}

/// From the coordinator to a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum ToWorker {
    /// Join the gang and train.
    Begin(Box<Assignment>),
    /// The coordinator lives.
    Alive {
        /// How far the work of the whole gang is: while this moves, waiting for a peer makes sense.
        progress: u64,
    },
    /// Finish the step in progress, write the state, and end.
    Stop,
    /// Finish the step in progress, write the state, say so, and wait to begin again with other peers.
    Pause {
        /// The generation.
        generation: u16,
    },
    /// What a worker of the generation shares with all of them, itself included.
    Shared {
        /// The generation.
        generation: u16,
        /// What it is, the same on every rank.
        name: String,
        /// Who shares it.
        rank: usize,
        /// The value.
        value: Value,
    },
    /// A worker of this generation was lost: stop waiting for it, say so, and wait to begin again.
    CallOff {
        /// The generation.
        generation: u16,
    },
}

/// What a worker took of its machine since it was last asked.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WorkerUsage {
    /// Processor time, in percent of one core.
    pub cpu_percent: f64,
    /// Memory that it has now.
    pub memory_bytes: u64,
    /// The share of the time that it waited for its peers, from 0 to 1.
    pub waiting: f64,
}

/// From a worker to the coordinator.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum FromWorker {
    /// This process lives, whatever else it has to say.
    Alive {
        /// How far its work is, in a count that only grows while it works.
        progress: u64,
    },
    /// What this process takes of its machine, every few seconds.
    Usage(WorkerUsage),
    /// Marks of the parameters after some steps. Rank 0 reports.
    Trace(TraceLine),
    /// What each thread did in the profiled steps, as events of Chrome's trace format: JSON objects with commas between
    /// them. Every rank reports, perhaps in several messages.
    Profile {
        /// The events.
        events: String,
    },
    /// The first optimizer step of a generation is done.
    FirstStep {
        /// Steps of the run that were done before it.
        step: u64,
    },
    /// All that was lost with the generation before is done again. Rank 0 reports.
    CaughtUp,
    /// Something that people should know of, and that does not stop training.
    Warning {
        /// In words.
        words: String,
    },
    /// Where training is. Every rank reports.
    Progress(Progress),
    /// An epoch ended. Rank 0 reports.
    Epoch(EpochResult),
    /// A script reported something. Rank 0 reports.
    Reported(Reported),
    /// A value for all workers of the generation.
    Share {
        /// The generation.
        generation: u16,
        /// What it is, the same on every rank.
        name: String,
        /// The value.
        value: Value,
    },
    /// The shares of copies of the state that this process holds, said when it has stopped working.
    Held {
        /// What they are. Only the gang reads this.
        shares: Value,
    },
    /// Training ended as asked and everything is written. Every rank reports.
    Finished(Finished),
    /// Training paused as asked, after the same step on every rank; rank 0 has written the state. Every rank
    /// reports.
    Paused {
        /// Optimizer steps that were done by then.
        step: u64,
    },
    /// This process is to end soon, as when its machine is taken away, and asks to be done without.
    Leaving,
    /// This worker cannot go on. The error names what and why. If a peer was lost it waits to begin
    /// again, else it ends.
    Failed {
        /// The whole error chain in one line.
        error: String,
        /// Whether this is only the consequence of another worker's failure (a peer was lost).
        peer_lost: bool,
        /// Whether it is this worker's own failure, after which it can begin again, as when its script was killed.
        #[serde(default)]
        again: bool,
        /// The rank that this worker waited for in vain.
        waiting_for: Option<usize>,
        /// Optimizer steps that were done by then.
        #[serde(default)]
        step: u64,
    },
}

/// A worker's last report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// True when a stop was asked for before all epochs were trained.
    pub interrupted: bool,
    /// Epochs trained completely.
    pub epochs: u32,
    /// Whether the job's patience ended before its epochs did.
    #[serde(default)]
    pub stopped_early: bool,
    /// What was learned, measured on the test set.
    pub metrics: Option<Metrics>,
    /// What it is worth there, in more numbers.
    pub evaluation: Option<Box<Summary>>,
    /// What was learned, measured on validation data, if there are some.
    pub val: Option<Metrics>,
    /// The epoch whose weights were kept.
    pub best_epoch: Option<u32>,
    /// SHA-256 of what was learned, the same on every rank that knows it.
    pub weights_sha256: Option<String>,
    /// Seconds spent in training steps alone.
    pub step_s: f64,
    /// Seconds from the first step to the last, evaluation included.
    pub train_s: f64,
    /// Training samples processed by the whole gang.
    pub samples: u64,
    /// Where the time of steps went, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_times: Option<StepTimes>,
}
