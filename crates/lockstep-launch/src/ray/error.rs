//! Why workers cannot be started on a Ray cluster.

use crate::ray::protocol::Why;
use std::io;
use std::path::PathBuf;

/// The variable that names the Python that has Ray.
pub(crate) const PYTHON: &str = "LOCKSTEP_PYTHON";

/// Why workers cannot be started on a Ray cluster.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RayError {
    /// There is no Python to be started.
    #[error(
        "cannot start `{python}`, the Python that has Ray: {why}; {PYTHON} names another, such as \
         /opt/venv/bin/python"
    )]
    NoPython {
        /// Its name.
        python: String,
        /// What the system said.
        why: String,
    },
    /// It has no Ray.
    #[error(
        "{python} cannot import Ray ({error}); `--engine ray` runs on a node of the cluster, with the Python of its \
         Ray: put that first in PATH, or name it in {PYTHON}"
    )]
    NoRay {
        /// The Python that was tried.
        python: String,
        /// What it said.
        error: String,
    },
    /// The cluster cannot be reached.
    #[error(
        "cannot reach a Ray cluster{}: {error}; start one with `ray start --head`, or name the head's address in \
         RAY_ADDRESS, such as 10.0.0.1:6379",
        named(.address)
    )]
    NoCluster {
        /// The address, if the environment has one.
        address: Option<String>,
        /// What Ray said.
        error: String,
    },
    /// The cluster refuses what is asked of it.
    #[error("Ray cannot make room for the workers: {0}")]
    Refused(String),
    /// The cluster did not answer in time.
    #[error(
        "the Ray cluster did not start the workers' actors within {seconds} s (gang.start_deadline_s)"
    )]
    Silent {
        /// How long it was waited for.
        seconds: f64,
    },
    /// There is no room for the workers.
    #[error("{0}")]
    NoRoom(String),
    /// The process that speaks with Ray ended.
    #[error("the process that speaks with Ray ended{}", after(.last_words))]
    Gone {
        /// The last that it wrote.
        last_words: String,
    },
    /// This program's own file cannot be used.
    #[error("cannot use {}: {why}", path.display())]
    Program {
        /// The file.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// The system refused something.
    #[error("cannot {what}: {why}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        why: String,
    },
}

impl RayError {
    /// What the shim says in one word and Ray in many.
    pub(crate) fn reported(why: Why, error: String, python: String) -> Self {
        match why {
            Why::Import => Self::NoRay { python, error },
            Why::Connect => Self::NoCluster {
                address: std::env::var("RAY_ADDRESS").ok(),
                error,
            },
            Why::Reserve => Self::Refused(error),
        }
    }

    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::System {
            what,
            why: error.to_string(),
        }
    }
}

fn named(address: &Option<String>) -> String {
    address.as_ref().map_or_else(String::new, |address| {
        format!(" at {address} (RAY_ADDRESS)")
    })
}

fn after(last_words: &str) -> String {
    match last_words {
        "" => String::new(),
        words => format!("; the last it wrote was: {words}"),
    }
}
