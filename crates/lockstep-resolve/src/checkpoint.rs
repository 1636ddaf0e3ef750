//! When a run's state is written, how many stay, and what the best epoch or round is.

use lockstep_job::{Every, JobCheckpoint};
use lockstep_measure::Measure;
use serde::{Deserialize, Serialize};

/// When a run's state is written, how many stay, and what the best epoch or round is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CheckpointRules {
    /// When it is written.
    pub every: Interval,
    /// How many of the newest stay.
    pub keep: usize,
    /// The measure on validation data by which the best is chosen.
    pub best: Measure,
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
    pub(crate) fn of(job: &JobCheckpoint) -> Self {
        Self {
            every: match job.every {
                Every::Steps(steps) => Interval::Steps(steps),
                Every::Epochs(epochs) => Interval::Epochs(epochs),
                Every::Seconds(seconds) => Interval::Seconds(seconds),
                Every::None => Interval::Never,
            },
            keep: job.keep,
            best: measure(job.best),
        }
    }
}

fn measure(word: lockstep_job::Measure) -> Measure {
    use lockstep_job::Measure as Word;
    match word {
        Word::Loss => Measure::Loss,
        Word::Accuracy => Measure::Accuracy,
        Word::F1 => Measure::F1,
        Word::Precision => Measure::Precision,
        Word::Recall => Measure::Recall,
        Word::Top5 => Measure::Top5,
        Word::Auc => Measure::Auc,
        Word::AveragePrecision => Measure::AveragePrecision,
        Word::PositiveF1 => Measure::PositiveF1,
        Word::PositivePrecision => Measure::PositivePrecision,
        Word::PositiveRecall => Measure::PositiveRecall,
        Word::WeightedF1 => Measure::WeightedF1,
        Word::WeightedPrecision => Measure::WeightedPrecision,
        Word::WeightedRecall => Measure::WeightedRecall,
        Word::Exact => Measure::Exact,
        Word::MicroF1 => Measure::MicroF1,
        Word::MicroPrecision => Measure::MicroPrecision,
        Word::MicroRecall => Measure::MicroRecall,
        Word::Mse => Measure::Mse,
        Word::Mae => Measure::Mae,
        Word::R2 => Measure::R2,
        Word::Ndcg => Measure::Ndcg,
        Word::Ndcg10 => Measure::Ndcg10,
        Word::Map => Measure::Map,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_the_names_that_the_job_file_has_for_them() {
        for own in Measure::ALL {
            let word = own.word();
            let named: lockstep_job::Measure = serde_json::from_value(word.into()).unwrap();
            assert_eq!(measure(named), *own);
            assert_eq!((named.word(), serde_json::json!(own)), (word, word.into()));
        }
    }
}
