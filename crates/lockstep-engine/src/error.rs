//! Why a run could not begin, or not be recorded.

use lockstep_base::fs::FsError;
use lockstep_embed::EmbedError;
use lockstep_gang::GangError;
use lockstep_launch::ray::RayError;
use lockstep_launch::{LaunchError, NotReady};
use lockstep_learner::LearnerError;
use lockstep_runs::RunsError;
use std::error::Error;
use std::io;
use std::path::PathBuf;

/// Why a run could not begin, or not be recorded.
///
/// What goes wrong once workers train is not an error of the engine but the run's result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The job does not fit its data, or something that its learner needs is not there.
    #[error(transparent)]
    Learner(Box<dyn Error + Send + Sync>),
    /// The pictures cannot be embedded.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// A file or a folder cannot be used.
    #[error(transparent)]
    File(#[from] FsError),
    /// The run or its store cannot be used.
    #[error(transparent)]
    Store(#[from] RunsError),
    /// The rendezvous or the shared memory could not be made.
    #[error(transparent)]
    Gang(#[from] GangError),
    /// No worker can be started.
    #[error(transparent)]
    NotReady(#[from] NotReady),
    /// The Ray cluster cannot be used.
    #[error(transparent)]
    Ray(#[from] RayError),
    /// A worker could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The job wants workers to share memory that cannot.
    #[error(
        "gang.transport: the workers are on different hosts, which share no memory; \"auto\" or \
         \"tcp\" would work"
    )]
    NoSharedMemory,
    /// The control group allows less memory than the gang will take.
    #[error(
        "{workers} workers need {planned} MiB of memory, and the control group allows {limit} MiB with swap: fewer \
         workers, a smaller train.batch or a higher limit would help"
    )]
    TooLittleMemory {
        /// How many workers there are to be.
        workers: usize,
        /// What they will take, in MiB.
        planned: u64,
        /// What they may take, in MiB.
        limit: u64,
    },
    /// A node of the cluster does not see what the run needs.
    #[error("{0}")]
    NotShared(String),
    /// A worker failed before any had trained.
    #[error("{0}")]
    Start(String),
    /// A worker did not join the gang in time.
    #[error(
        "{worker} did not join within {seconds} s (gang.start_deadline_s); \
         is the machine overloaded, or TCP to the coordinator blocked?"
    )]
    StartDeadline {
        /// The first worker that is missing, in words.
        worker: String,
        /// How long it was waited for.
        seconds: f64,
    },
    /// There is nothing to go on from.
    #[error(
        "{run} cannot be resumed: it has no checkpoint; it ended before its first one, or without any \
         because of checkpoint.every"
    )]
    NotResumable {
        /// Where the run lies.
        run: String,
    },
    /// The state to go on from is not one of this job.
    #[error(transparent)]
    Resume(Box<dyn Error + Send + Sync>),
    /// What the workers of numbered tasks need before the first one could not be had.
    #[error("cannot {kind}: {error}")]
    TaskSetup {
        /// What the tasks are.
        kind: String,
        /// What the worker said.
        error: String,
        /// Whether it may be gone later: a store was out of reach.
        passing: bool,
    },
    /// A task failed by itself.
    #[error("cannot {kind}: task {task}: {error}")]
    TaskFailed {
        /// What the tasks are.
        kind: String,
        /// The task, counted from 0.
        task: usize,
        /// What the worker said.
        error: String,
        /// Whether it may be gone later: a store was out of reach.
        passing: bool,
    },
    /// A task ended its worker as often as it may.
    #[error("cannot {kind}: task {task} lost its worker {times} times; the last time, {reason}")]
    TaskKills {
        /// What the tasks are.
        kind: String,
        /// The task, counted from 0.
        task: usize,
        /// How often its worker ended.
        times: usize,
        /// How the last one ended.
        reason: String,
    },
    /// More workers were lost than may be replaced.
    #[error("cannot {kind}: {reason}; after {restarts} restarts no more were allowed")]
    TaskRestarts {
        /// What the tasks are.
        kind: String,
        /// How often a worker was replaced.
        restarts: usize,
        /// How the last one ended.
        reason: String,
    },
    /// The file of a profile cannot be written.
    #[error("cannot write the profile {}: {source}", path.display())]
    Profile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused something that supervision needs.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl From<LearnerError> for EngineError {
    fn from(error: LearnerError) -> Self {
        match error {
            LearnerError::Job(error) => Self::Learner(error),
            LearnerError::Resume(error) => Self::Resume(error),
        }
    }
}

impl EngineError {
    /// For `map_err`: the system refused something.
    pub fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }

    /// What the two sides say is made of plain words and numbers: this does not happen.
    pub(crate) fn unspeakable(error: serde_json::Error) -> Self {
        Self::system("speak with a worker")(error.into())
    }

    /// Whether the same may succeed later: a store or a source of data was out of reach, or changed meanwhile.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::TaskSetup { passing, .. } | Self::TaskFailed { passing, .. } => *passing,
            error => lockstep_place::is_passing(error),
        }
    }
}

/// An error and its causes in one line. A cause that a message includes already is not repeated.
pub fn describe(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text += &format!(": {said}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("{text}")]
        struct Told {
            text: &'static str,
            source: io::Error,
        }
        let told = |text| {
            let source = io::Error::other("disk full");
            describe(&Told { text, source })
        };
        assert_eq!(told("cannot write a"), "cannot write a: disk full");
        assert_eq!(
            told("cannot write a (disk full)"),
            "cannot write a (disk full)"
        );
    }
}
