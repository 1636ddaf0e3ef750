//! What a job that is a script means.

use crate::sources::{frame, no_groups, of_reference};
use crate::training::normalisation;
use crate::{ResolveError, access, place};
use lockstep_data::{FrameSource, Normalisation, Source};
use lockstep_job::{BestMode, Job, ScriptJob};
use lockstep_place::{Access, Place};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A script's job as the crates that do its work understand it.
#[derive(Debug, Clone)]
pub struct ResolvedScript {
    /// How its places are reached.
    pub access: Access,
    /// Where its runs go.
    pub store: Place,
    /// The sets that the script may ask for, by name: `train`, `val` and `test`.
    pub sets: Vec<(&'static str, ScriptSource)>,
    /// The share of the training set that is handed out as `val`.
    pub val_share: f64,
    /// Normalisation of the samples.
    pub normalise: Option<Normalisation>,
    /// What is started.
    pub settings: ScriptSettings,
}

/// Where what a script is handed comes from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ScriptSource {
    /// Samples as networks see them: one array, and what is to be predicted.
    Samples(Box<Source>),
    /// A table of which the job does not say what is to be learned: its columns as they are.
    Columns(FrameSource),
}

/// What is started, and what is done with what it reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScriptSettings {
    /// The job's name.
    pub job: String,
    /// The program and its arguments, started once for each worker in the job file's folder.
    pub command: Vec<String>,
    /// Variables in its environment.
    pub env: BTreeMap<String, String>,
    /// Where the order of samples that it is handed comes from.
    pub seed: u64,
    /// Samples in a batch that it is handed, if it does not say so itself.
    pub batch: usize,
    /// Seconds that it may take to end after it was asked to.
    pub stop_s: f64,
    /// Seconds that a report with a checkpoint, a barrier or a broadcast waits for the other workers.
    pub report_timeout_s: f64,
    /// Seconds without any sign of work after which it is taken to hang.
    pub stall_s: f64,
    /// How often the gang may begin again.
    pub max_restarts: u32,
    /// How many of the checkpoints that it reports stay, and which is the best.
    pub checkpoint: ScriptCheckpoints,
}

/// How many of the checkpoints that a script reports stay, and which is the best.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptCheckpoints {
    /// How many of the newest stay.
    pub keep: usize,
    /// The metric by which the best one is chosen; if absent, the newest is the best.
    pub best: Option<String>,
    /// Whether the lowest value of that metric is the best, and not the highest.
    pub lowest: bool,
}

impl ScriptSettings {
    fn of(job: &Job, script: &ScriptJob) -> Self {
        let (train, checkpoint) = (&script.train, &script.checkpoint);
        Self {
            job: job.name.clone(),
            command: train.command.clone(),
            env: train.env.clone(),
            seed: train.seed,
            batch: train.batch,
            stop_s: train.stop_s,
            report_timeout_s: train.report_timeout_s,
            stall_s: train.stall_s,
            max_restarts: job.recover.max_restarts,
            checkpoint: ScriptCheckpoints {
                keep: checkpoint.keep,
                best: checkpoint.best.clone(),
                lowest: checkpoint.mode == BestMode::Min,
            },
        }
    }
}

impl ResolvedScript {
    /// Finds out what `job` means, and what of it is the script's own. Nothing is listed or read, but it is looked whether a path is a folder.
    ///
    /// # Errors
    /// When a place of the job makes no sense, or pictures would come out in several sizes.
    pub fn of(job: &Job, script: &ScriptJob) -> Result<Self, ResolveError> {
        let mut sets = Vec::new();
        let (mut val_share, mut normalise) = (0.0, None);
        if let Some(data) = &job.data {
            no_groups(data)?;
            for (name, reference) in data.sets() {
                let source = match frame((data, &job.storage), reference)? {
                    Some(table) if data.normalise.is_some() => {
                        return Err(ResolveError::NormalisedColumns {
                            table: table.place.to_string(),
                        });
                    }
                    Some(table) => ScriptSource::Columns(table),
                    None => {
                        let source = of_reference((data, &job.storage), reference, None)?;
                        ScriptSource::Samples(Box::new(source))
                    }
                };
                sets.push((name, source));
            }
            let parted = [
                ("test_split", data.test_split > 0.0),
                ("split", data.split.is_some()),
            ];
            if let Some((key, _)) = parted.into_iter().find(|(_, is_given)| *is_given) {
                return Err(ResolveError::SplitScript { key });
            }
            if data.stratify {
                return Err(ResolveError::StratifiedScript);
            }
            if data.balance {
                return Err(ResolveError::Balanced {
                    learner: "a script is handed every sample once an epoch",
                });
            }
            val_share = data.validation.share();
            normalise = data.normalise.as_ref().map(normalisation);
        }
        Ok(Self {
            access: access(&job.storage)?,
            store: place(&job.run.store, &job.storage)?,
            sets,
            val_share,
            normalise,
            settings: ScriptSettings::of(job, script),
        })
    }
}
