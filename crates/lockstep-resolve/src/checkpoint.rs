//! When a run's state is written, how many stay, and what the best epoch or round is.

use lockstep_job::{Every, JobBest, JobCheckpoint, JobMetrics};
use lockstep_measure::{BestBy, Measure};
use serde::{Deserialize, Serialize};

/// When a run's state is written, how many stay, and what the best epoch or round is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckpointRules {
    /// When it is written.
    pub every: Interval,
    /// How many of the newest stay.
    pub keep: usize,
    /// What the best is chosen by, on validation data.
    pub best: BestBy,
}

/// How often a checkpoint is written.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Interval {
    /// After so many steps.
    Steps(u64),
    /// After so many epochs.
    Epochs(u64),
    /// After so many seconds.
    Seconds(f64),
    /// Never while training goes on.
    Never,
}

impl CheckpointRules {
    /// What the job file's section means.
    pub(crate) fn of(job: &JobCheckpoint, metrics: &JobMetrics) -> Self {
        Self {
            every: match job.every {
                Every::Steps(steps) => Interval::Steps(steps),
                Every::Epochs(epochs) => Interval::Epochs(epochs),
                Every::Seconds(seconds) => Interval::Seconds(seconds),
                Every::None => Interval::Never,
            },
            keep: job.keep,
            best: match &job.best {
                JobBest::Measure(measure) => BestBy::Measure(*measure),
                // A job without this metric was refused.
                JobBest::Own(name) => (metrics.find(name).cloned())
                    .map_or(BestBy::Measure(Measure::Loss), BestBy::Own),
            },
        }
    }
}
