//! What can be wrong with a plan, and what can go wrong while it is measured.

use crate::Peer;
use lockstep_base::fs::FsError;
use lockstep_data::DataError;
use lockstep_resolve::ResolveError;
use std::error::Error;
use std::io;
use std::process::ExitStatus;

/// Why nothing can be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// A number that must be at least one is not.
    #[error("{flag}: found 0, and it must be at least 1")]
    Zero {
        /// The flag.
        flag: &'static str,
    },
    /// A list is empty.
    #[error(
        "{flag}: nothing is in the list; write numbers with commas between them, such as 1,2,4"
    )]
    Empty {
        /// The flag.
        flag: &'static str,
    },
    /// There is nothing to compare with.
    #[error(
        "--workers {workers}: there is nothing to compare with; name at least two numbers of workers, such as \
         1,{workers}, or several of --batch"
    )]
    OneSetting {
        /// The only number of workers.
        workers: usize,
    },
    /// A network is not understood.
    #[error(
        "--network: found {found:?}; write a rate, and a delay if it is known, such as 10gbit or 400mbit/2ms"
    )]
    Network {
        /// What was found.
        found: String,
    },
    /// How often hosts are lost is not understood.
    #[error("--failures: found {found:?}; write how often each host is lost, such as 1/h or 1/30d")]
    Failures {
        /// What was found.
        found: String,
    },
    /// A system to compare with is not known.
    #[error("--against: found {found:?}; known are torch-threads, torch-ddp and ray-train")]
    Peer {
        /// What was found.
        found: String,
    },
    /// A batch per worker was asked for, and the job has no batch.
    #[error("--weak: the job has no train.batch that could be kept per worker")]
    NoBatch,
}

/// Why a setting cannot be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// A run could not begin.
    #[error(transparent)]
    Train(Box<dyn Error + Send + Sync>),
    /// A run failed.
    #[error("{0}")]
    Run(String),
    /// Data cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The job makes no sense.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// A file cannot be used.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] FsError),
    /// A setting that is in no plan.
    #[error("no such setting was planned")]
    Unplanned,
    /// A peer that nobody made ready.
    #[error("{0} was not made ready")]
    NotReady(Peer),
    /// Workers of something else than a network.
    #[error("only a network's workers can be measured apart")]
    NotApart,
    /// A run that panicked.
    #[error("a run without others ended in a panic")]
    Panic,
    /// A job without data.
    #[error("the job has no data")]
    NoData,
    /// Samples that change.
    #[error(
        "--against: peers neither embed pictures nor change samples from step to step; leave [embed] and data.augment out"
    )]
    Changing,
    /// Something that peers would leave out.
    #[error("--against: peers do not know {0}; leave it out")]
    UnknownToPeers(&'static str),
    /// Targets that are no classes.
    #[error("--against: peers tell classes apart, and {set} has {kind}")]
    NoClasses {
        /// The set.
        set: String,
        /// What it has.
        kind: String,
    },
    /// There is no Python.
    #[error("--against needs python3 with venv and pip")]
    NoPython(#[source] io::Error),
    /// What peers need cannot be installed.
    #[error("--against: `{command}` failed ({ended})")]
    Install {
        /// The command.
        command: String,
        /// How it ended.
        ended: ExitStatus,
    },
    /// Somebody asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// A peer failed.
    #[error("{peer} failed ({ended}); the end of what it said:\n{said}")]
    Peer {
        /// Which.
        peer: Peer,
        /// How its process ended.
        ended: ExitStatus,
        /// Its last lines.
        said: String,
    },
    /// A peer's answer makes no sense.
    #[error("{peer}: its answer makes no sense")]
    PeerAnswer {
        /// Which.
        peer: Peer,
        /// Why.
        source: serde_json::Error,
    },
}
