//! What can go wrong with a run, with the place that it went wrong at.

use crate::checkpoint::Damaged;
use lockstep_base::fs::FsError;
use lockstep_place::PlaceError;
use thiserror::Error;

/// A run or its store could not be used as asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunsError {
    /// The result of a run makes no sense.
    #[error("{path} is damaged")]
    DamagedResult {
        /// The file.
        path: String,
        /// Why.
        source: serde_json::Error,
    },
    /// The place that holds runs cannot be made or written to.
    #[error(
        "cannot write to the run store {store}: {reason}; set run.store to a folder that can be written"
    )]
    Unwritable {
        /// The store.
        store: String,
        /// Why it cannot be written.
        reason: String,
    },
    /// A job's name cannot be part of a folder's name.
    #[error(
        "`{name}` cannot name a run: use 1 to 100 letters, digits, `-`, `_` or `.`, \
         the first of them a letter or a digit"
    )]
    Name {
        /// The name as given.
        name: String,
    },
    /// A place is not that of a run.
    #[error("{place} is not a run: it has no job.toml")]
    NotARun {
        /// The place as given.
        place: String,
    },
    /// Another process trains this run.
    #[error(
        "the run {name} is in use by another `lockstep run`{}: wait for it to end, or stop it",
        in_brackets(holder)
    )]
    InUse {
        /// The run's name.
        name: String,
        /// Who has it, in words; empty if that is not known.
        holder: String,
    },
    /// The run has gone on without whoever wants to write.
    #[error(
        "the run {name} has gone on without this process: generation {current} writes it, and this is {own}"
    )]
    Stale {
        /// The run's name.
        name: String,
        /// Who may write, in words.
        current: String,
        /// Who wanted to.
        own: String,
    },
    /// The run's folder was removed while the run went on.
    #[error(
        "{place} is gone: the run's folder, or the store around it, was removed while the run went on"
    )]
    Gone {
        /// Where the run was.
        place: String,
    },
    /// A run has checkpoints, but none can be used.
    #[error("no checkpoint in {place} is whole: {}", listed(damaged))]
    NoWholeCheckpoint {
        /// The folder of the checkpoints.
        place: String,
        /// What is wrong with each, from the newest on.
        damaged: Vec<Damaged>,
    },
    /// A file of this machine could not be used.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// What was given is a part of the names of several runs.
    #[error("`{given}` may be several runs: {listed}")]
    Several {
        /// What was given.
        given: String,
        /// Some of the runs.
        listed: String,
    },
    /// A place could not be read or written.
    #[error(transparent)]
    Place(#[from] PlaceError),
}

fn listed(damaged: &[Damaged]) -> String {
    let each: Vec<String> = damaged.iter().map(ToString::to_string).collect();
    each.join("; ")
}

fn in_brackets(words: &str) -> String {
    match words {
        "" => String::new(),
        words => format!(" ({words})"),
    }
}

impl RunsError {
    /// Whether nothing that the run's workers do from here on can count.
    pub fn ends_the_run(&self) -> bool {
        matches!(self, RunsError::Stale { .. } | RunsError::Gone { .. })
    }

    /// For `map_err`: the store cannot be written.
    pub(crate) fn unwritable(store: impl ToString) -> impl Fn(PlaceError) -> RunsError {
        let store = store.to_string();
        move |error| RunsError::Unwritable {
            store: store.clone(),
            reason: match error {
                // The path is known: only the system's word for it is news.
                PlaceError::Io { source, .. } => source.to_string(),
                PlaceError::Write(FsError::Io { source, .. }) => source.to_string(),
                error => error.to_string(),
            },
        }
    }
}
