//! What the coordinator and the shim say to each other: one JSON object a line.

use crate::WorkerEnd;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Amounts of what a node has and a worker asks for, by Ray's names: `CPU`, `GPU`, `memory` (in bytes).
pub(crate) type Amounts = BTreeMap<String, f64>;

/// The first order: what room is to be made, and what runs there.
#[derive(Debug, Serialize)]
pub(crate) struct Open {
    /// Under which the cluster knows this run.
    pub(crate) name: String,
    /// How many there are at most.
    pub(crate) workers: usize,
    /// How many are placed together before anything else, so that the work can begin.
    pub(crate) enough: usize,
    /// What each of them needs.
    pub(crate) worker: Amounts,
    /// Ray's name of how they are placed.
    pub(crate) place: &'static str,
    /// What a node must be labelled with.
    pub(crate) labels: BTreeMap<String, String>,
    /// This program, on this machine.
    pub(crate) program: String,
    /// Its size in bytes: a file of the same name and size is the same program.
    pub(crate) size: u64,
    /// After how long without the coordinator a worker ends itself, in seconds.
    pub(crate) lease_s: f64,
}

/// What is to be done with one worker. Launches are numbered over the life of the shim: a seat and an
/// incarnation come again when the same launcher serves tasks first and a gang then.
#[derive(Debug, Serialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(crate) enum Order<'a> {
    /// Start it.
    Start {
        launch: u64,
        seat: usize,
        command: &'a str,
        invitation: &'a str,
        speaks: bool,
    },
    /// Tell it a line.
    Tell { launch: u64, line: &'a str },
    /// End it at once.
    End { launch: u64 },
}

/// What the shim reports.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum Report {
    /// Something that everything depends on does not work.
    Failed {
        why: Why,
        error: String,
        python: String,
    },
    /// The cluster answers.
    Connected {
        /// The address of this node.
        here: std::net::IpAddr,
        /// The version of Ray.
        ray: String,
        /// How many nodes there are.
        nodes: usize,
    },
    /// There is no room yet.
    Waiting(Waiting),
    /// The actor of a seat is up, on the node with this address.
    Arrived { seat: usize, node: String },
    /// The actor of a seat, which had no worker, is gone.
    Unseated { seat: usize, error: String },
    /// A worker is a process now.
    Started { launch: u64, value: u32 },
    /// It said something: a part of its output in which each character is a byte.
    Said { launch: u64, value: String },
    /// Its node is about to be taken away, in words. Told again and again while it runs.
    Leaving { launch: u64, value: String },
    /// It wrote something for people, in the same form.
    Wrote { launch: u64, value: String },
    /// All that it said and wrote was told.
    Silent { launch: u64 },
    /// It ended.
    Ended { launch: u64, value: End },
}

/// What there is while room is waited for.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Waiting {
    /// The nodes, which lack room.
    pub(crate) nodes: Vec<Node>,
    /// What is free on all of them together.
    pub(crate) free: Amounts,
    /// What the autoscaler is about to bring, in its own words, such as `small, 2 launching`; nothing where there is
    /// none.
    pub(crate) pending: Vec<String>,
    /// What it could not bring, in its own words.
    pub(crate) failures: Vec<String>,
}

/// What does not work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Why {
    /// Python has no Ray.
    Import,
    /// There is no cluster.
    Connect,
    /// The cluster refuses what is asked of it.
    Reserve,
}

/// A node of the cluster, as far as placing workers goes.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Node {
    /// Its address.
    pub(crate) node: String,
    /// All that it has, free or not.
    pub(crate) has: Amounts,
    /// Its labels.
    pub(crate) labels: BTreeMap<String, String>,
}

/// What Ray says of an actor that its memory monitor ended, and of no other. Of every actor that is gone it says that
/// the `OOM killer` may have ended it, which is a guess.
const FOR_MEMORY: [&str; 4] = [
    "NODE_OUT_OF_MEMORY",
    "running low on memory",
    "OutOfMemoryError",
    "exceeds the memory usage threshold",
];

/// Whether what Ray says of an actor means that it lacked memory.
pub(crate) fn lacked_memory(words: &str) -> bool {
    FOR_MEMORY.iter().any(|sign| words.contains(sign))
}

/// How a worker ended; one of these is said.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct End {
    code: Option<i32>,
    signal: Option<i32>,
    oom: bool,
    lost: Option<String>,
}

impl End {
    /// In the words of the engine.
    pub(crate) fn worker_end(self) -> WorkerEnd {
        match self {
            Self { oom: true, .. } => WorkerEnd::OutOfMemory,
            Self {
                lost: Some(how), ..
            } => match lacked_memory(&how) {
                true => WorkerEnd::OutOfMemory,
                false => WorkerEnd::Lost(how),
            },
            Self {
                signal: Some(signal),
                ..
            } => WorkerEnd::Signal(signal),
            Self {
                code: Some(code), ..
            } => WorkerEnd::Code(code),
            _ => WorkerEnd::Unknown,
        }
    }
}

/// The bytes of a text in which each character is one.
pub(crate) fn bytes(text: &str) -> Vec<u8> {
    text.chars().map(|byte| byte as u8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_the_shim_are_understood() {
        let read = |text: &str| serde_json::from_str::<Report>(text).unwrap();
        let ended = read(r#"{"is": "ended", "launch": 3, "value": {"signal": 9}}"#);
        let Report::Ended { launch: 3, value } = ended else {
            panic!("{ended:?}");
        };
        assert_eq!(value.worker_end(), WorkerEnd::Signal(9));
        let wrote = read(r#"{"is": "wrote", "launch": 3, "value": "\u00c3\u00bc\n"}"#);
        let Report::Wrote { value, .. } = wrote else {
            panic!("{wrote:?}");
        };
        assert_eq!(bytes(&value), "ü\n".as_bytes());
        let silent = read(r#"{"is": "silent", "launch": 3, "value": null}"#);
        assert!(matches!(silent, Report::Silent { launch: 3 }));
    }

    #[test]
    fn a_worker_ran_out_of_memory_only_if_ray_knows_it() {
        let end = |words: &str| {
            let lost = Some(format!("its actor is gone: {words}"));
            let end = End {
                lost,
                ..End::default()
            };
            end.worker_end()
        };
        let guess = "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker \
            exit detail: Worker unexpectedly exits with a connection error code 2. End of file. There are some \
            potential root causes. (1) The process is killed by SIGKILL by OOM killer due to high memory usage. \
            (2) ray stop --force is called. (3) The worker is crashed unexpectedly due to SIGSEGV or other \
            unexpected errors.";
        assert!(matches!(end(guess), WorkerEnd::Lost(how) if how.contains("SIGKILL")));
        let known = "The actor is dead because its worker process has died. Worker exit type: NODE_OUT_OF_MEMORY \
            Worker exit detail: Task was killed due to the node running low on memory.";
        assert_eq!(end(known), WorkerEnd::OutOfMemory);
    }
}
