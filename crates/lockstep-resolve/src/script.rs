//! What a job that is a script means.

use crate::sources::{frame, no_groups, of_reference};
use crate::{ResolveError, access, place};
use lockstep_data::{FrameSource, Source};
use lockstep_job::{Job, JobNormalise, Validation};
use lockstep_place::{Access, Place};
use serde::{Deserialize, Serialize};

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
    pub normalise: Option<JobNormalise>,
}

/// Where what a script is handed comes from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ScriptSource {
    /// Samples as networks see them: one array, and what is to be predicted.
    Samples(Box<Source>),
    /// A table of which the job does not say what is to be learned: its columns as they are.
    Columns(FrameSource),
}

impl ResolvedScript {
    /// Finds out what `job` means. Nothing is listed or read, but it is looked whether a path is a folder.
    ///
    /// # Errors
    /// When a place of the job makes no sense, or pictures would come out in several sizes.
    pub fn of(job: &Job) -> Result<Self, ResolveError> {
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
            if data.stratify {
                return Err(ResolveError::StratifiedScript);
            }
            if data.balance {
                return Err(ResolveError::Balanced {
                    learner: "a script is handed every sample once an epoch",
                });
            }
            if let Validation::Split(share) = data.validation {
                val_share = share;
            }
            normalise = data.normalise.clone();
        }
        Ok(Self {
            access: access(&job.storage)?,
            store: place(&job.run.store, &job.storage)?,
            sets,
            val_share,
            normalise,
        })
    }
}
