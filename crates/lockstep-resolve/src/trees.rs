//! What a job that grows trees means.

use crate::sources::{group_of, of_reference};
use crate::{ResolveError, SetSources, access, data_of, place};
use lockstep_data::TargetKind;
use lockstep_job::{Data, Job, JobCheckpoint, TreesJob, TreesModel, Validation};
use lockstep_place::{Access, Place};
use serde::{Deserialize, Serialize};

/// A job of trees as the crates that do its work understand it.
#[derive(Debug, Clone)]
pub struct ResolvedTrees {
    /// How its places are reached.
    pub access: Access,
    /// Where its runs go.
    pub store: Place,
    /// What is learned from, and measured on.
    pub sets: SetSources,
    /// What the learner is told.
    pub settings: TreesSettings,
}

/// How trees are grown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TreesSettings {
    /// The trees.
    pub model: TreesModel,
    /// Threads of a worker.
    pub threads: usize,
    /// Where all random numbers of the run come from.
    pub seed: u64,
    /// Rounds without a better one after which training ends.
    pub patience: Option<u32>,
    /// The share of the training set that is set aside for validation.
    pub val_share: f64,
    /// Whether that is the same share of every class.
    #[serde(default)]
    pub stratify: bool,
    /// When the state is written, and what the best round is.
    pub checkpoint: JobCheckpoint,
}

impl ResolvedTrees {
    /// Finds out what `job` means, and what of it is the trees' own. Nothing is listed or read, but it is looked whether a path is a folder.
    ///
    /// # Errors
    /// When a place of the job makes no sense.
    pub fn of(job: &Job, trees: &TreesJob) -> Result<Self, ResolveError> {
        let data = data_of(job)?;
        let group = group_of(&data.train);
        let set = |reference, target| {
            let source = of_reference((data, &job.storage), reference, target)?;
            Ok::<_, ResolveError>(source.with_gaps().grouped_by(group))
        };
        let (mut val, mut test) = (None, None);
        for (name, reference) in data.sets() {
            match name {
                "val" => val = Some(set(reference, None)?),
                "test" => test = Some(set(reference, None)?),
                _ => {}
            }
        }
        if data.balance {
            return Err(ResolveError::Balanced {
                learner: "trees see all rows in every round",
            });
        }
        Ok(Self {
            access: access(&job.storage)?,
            store: place(&job.run.store, &job.storage)?,
            sets: SetSources {
                train: set(&data.train, target(data, trees))?,
                val,
                test,
            },
            settings: TreesSettings {
                model: trees.model.clone(),
                threads: trees.train.threads,
                seed: trees.train.seed,
                patience: trees.train.patience,
                val_share: match data.validation {
                    Validation::Split(share) => share,
                    Validation::Set(_) => 0.0,
                },
                stratify: data.stratify,
                checkpoint: (&trees.checkpoint).into(),
            },
        })
    }
}

/// What is predicted, if the job says so: an objective of numbers takes a few whole numbers as such, which would else be
/// classes.
fn target(data: &Data, trees: &TreesJob) -> Option<TargetKind> {
    let objective = trees.model.objective.as_deref().unwrap_or_default();
    let of_numbers = ["reg:", "count:", "rank:"];
    let is_of_numbers = of_numbers.iter().any(|kind| objective.starts_with(kind));
    (is_of_numbers || group_of(&data.train).is_some()).then_some(TargetKind::Numbers)
}
