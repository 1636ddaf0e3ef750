//! Why a pod cannot do its part.

use lockstep_job::pod::{ADDRESS, COORDINATOR, INDEX, PATIENCE, RUN};
use lockstep_launch::hosts::HostsError;
use lockstep_place::PlaceError;
use std::env::VarError;
use std::io;
use std::net::AddrParseError;
use std::num::ParseIntError;
use thiserror::Error;

/// Why a pod cannot do its part.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PodError {
    /// A variable is missing.
    #[error("{name} must be set; `lockstep submit --to kube` does that")]
    Missing {
        /// The variable.
        name: &'static str,
        /// What the system says.
        source: VarError,
    },
    /// The pod's number is none.
    #[error("{INDEX}: {index:?} is not a number")]
    Index {
        /// What it is.
        index: String,
        /// Why it is none.
        source: ParseIntError,
    },
    /// The pod's number is too high.
    #[error("{INDEX} is {index}, but the job has {workers} workers")]
    TooMany {
        /// The pod's number.
        index: usize,
        /// The workers of the job.
        workers: usize,
    },
    /// The run cannot be called so.
    #[error("{RUN}: {name:?} cannot be the name of a run")]
    Run {
        /// The name.
        name: String,
    },
    /// Number 0 has no port.
    #[error("{COORDINATOR}: {coordinator:?} has no port; NAME:PORT is needed")]
    CoordinatorWithoutPort {
        /// What was given.
        coordinator: String,
    },
    /// The port of number 0 is none.
    #[error("{COORDINATOR}: the port is not a number")]
    Port,
    /// The name of number 0 is not known.
    #[error("{COORDINATOR}: cannot look up {name}")]
    LookUp {
        /// The name.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// The name of number 0 means nothing.
    #[error("{COORDINATOR}: {name} has no address")]
    NoAddress {
        /// The name.
        name: String,
    },
    /// The pod's own address is none.
    #[error("{ADDRESS}: {address:?} is not an address")]
    Address {
        /// What it is.
        address: String,
        /// Why it is none.
        source: AddrParseError,
    },
    /// The patience is no span of time.
    #[error("{PATIENCE}: {seconds:?} is not a number of seconds")]
    Patience {
        /// What it is.
        seconds: String,
    },
    /// The system refuses something.
    #[error("{doing}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// A host or the hosts' listener failed.
    #[error(transparent)]
    Hosts(#[from] HostsError),
    /// The store, or the run's place in it, is none.
    #[error(transparent)]
    Place(#[from] PlaceError),
}

impl PodError {
    /// For `map_err`: the system refuses something.
    pub(super) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { doing, source }
    }
}
