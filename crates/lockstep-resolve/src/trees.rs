//! What a job that grows trees means.

use crate::parts::split_rule;
use crate::sources::{group_of, of_reference};
use crate::{
    CheckpointRules, ClassWeights, DecisionRules, ResolveError, SetSources, access, data_of, place,
};
use lockstep_data::TargetKind;
use lockstep_job::{
    Data, INEXACT_PARAMETERS, Job, JobCheckpoint, JobDevice, TreesJob, TreesModel, Workers,
};
use lockstep_measure::OwnMetric;
use lockstep_place::{Access, Place};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

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
    pub model: TreesPlan,
    /// What they are grown on.
    #[serde(default)]
    pub device: TreesDevice,
    /// Threads of a worker.
    #[serde(default)]
    pub threads: Option<usize>,
    /// Where all random numbers of the run come from.
    pub seed: u64,
    /// Rounds without a better one after which training ends.
    pub patience: Option<u32>,
    /// How much each class counts; if absent, all count alike.
    #[serde(default)]
    pub class_weights: Option<ClassWeights>,
    /// Which of two classes is looked for, and when it is predicted.
    #[serde(default)]
    pub decision: DecisionRules,
    /// The share of the training set that is set aside for validation.
    pub val_share: f64,
    /// Whether that is the same share of every class.
    pub stratify: bool,
    /// When the state is written, and what the best round is.
    pub checkpoint: CheckpointRules,
    /// Metrics of the job's own.
    #[serde(default)]
    pub metrics: Vec<OwnMetric>,
    /// All of these in the words of the job file, as checkpoints keep them.
    pub decides: Value,
}

/// What trees are grown on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreesDevice {
    /// The processor.
    #[default]
    Processor,
    /// A GPU: that of this number, or the first.
    Gpu(Option<u32>),
}

impl TreesDevice {
    fn of(device: JobDevice, workers: Workers) -> Result<Self, ResolveError> {
        match device {
            JobDevice::Auto | JobDevice::Cpu => Ok(Self::Processor),
            JobDevice::Cuda(_) if workers != Workers::exactly(1) => {
                Err(ResolveError::TreesOnGpus {
                    workers: workers.max,
                })
            }
            JobDevice::Cuda(number) => Ok(Self::Gpu(number)),
        }
    }

    /// Whether it is a GPU.
    pub fn is_gpu(self) -> bool {
        matches!(self, Self::Gpu(_))
    }
}

/// The trees that a job describes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TreesPlan {
    /// How many rounds; each adds a tree, or one for every class.
    pub rounds: u32,
    /// XGBoost's name for what is minimised; if absent, it follows from the labels.
    pub objective: Option<String>,
    /// Whether the model is the same to the byte on any number of workers.
    pub exact: bool,
    /// Which quantile is predicted, where one is.
    pub quantile: Option<f64>,
    /// What is predicted without any tree.
    pub base_score: Option<f64>,
    /// The most bins that a column is cut into.
    pub bins: Option<usize>,
    /// The share of the rows that a tree is grown on.
    pub row_share: Option<f64>,
    /// The share of the columns that a tree is grown on.
    pub column_share: Option<f64>,
    /// How much a row of the positive class counts, where there are two.
    pub positive_weight: Option<f64>,
    /// All of XGBoost's parameters that the job sets, by its names.
    pub xgboost: Vec<(String, String)>,
    /// Those of them that have no key of their own in the job file.
    pub parameters: BTreeMap<String, String>,
}

impl TreesPlan {
    fn of(model: &TreesModel) -> Result<Self, ResolveError> {
        let mut names = model.parameters.keys();
        let inexact = names.find(|name| INEXACT_PARAMETERS.contains(&name.as_str()));
        if let (true, Some(name)) = (model.exact, inexact) {
            return Err(ResolveError::InexactTrees { name: name.clone() });
        }
        let keys = &model.xgboost;
        Ok(Self {
            rounds: model.rounds,
            objective: model.objective.clone(),
            exact: model.exact,
            quantile: keys.quantile_alpha,
            base_score: keys.base_score,
            bins: keys.max_bin,
            row_share: keys.subsample,
            column_share: keys.colsample_bytree,
            positive_weight: keys.scale_pos_weight,
            xgboost: model.xgboost_parameters(),
            parameters: model.parameters.clone(),
        })
    }
}

impl ResolvedTrees {
    /// Finds out what `job` means, and what of it is the trees' own. Nothing is listed or read, but it is looked whether a path is a folder.
    ///
    /// # Errors
    /// When a place of the job makes no sense.
    pub fn of(job: &Job, trees: &TreesJob) -> Result<Self, ResolveError> {
        let data = data_of(job)?;
        let group = group_of(&data.train);
        if data.balance {
            return Err(ResolveError::Balanced {
                learner: "trees see all rows in every round",
            });
        }
        let (train, checkpoint) = (&trees.train, JobCheckpoint::from(&trees.checkpoint));
        let device = TreesDevice::of(train.device, train.workers)?;
        let rule = split_rule(data, train.seed);
        let val_share = match rule {
            Some(_) => 0.0,
            None => data.validation.share(),
        };
        Ok(Self {
            access: access(&job.storage)?,
            store: place(&job.run.store, &job.storage)?,
            sets: SetSources::of_each(data, rule, |name, reference| {
                let target = target(data, trees).filter(|_| name == "train");
                let source = of_reference((data, &job.storage), reference, target)?;
                Ok(source.with_gaps().grouped_by(group))
            })?,
            settings: TreesSettings {
                model: TreesPlan::of(&trees.model)?,
                device,
                threads: train.threads,
                seed: train.seed,
                patience: train.patience,
                class_weights: train.class_weights.as_ref().map(ClassWeights::of),
                decision: DecisionRules::of(&train.decision),
                val_share,
                stratify: data.stratify,
                checkpoint: CheckpointRules::of(&checkpoint, &trees.metrics),
                metrics: trees.metrics.0.clone(),
                decides: json!({
                    "model": trees.model,
                    "device": device.is_gpu().then_some("cuda"),
                    "threads": train.threads,
                    "seed": train.seed,
                    "patience": train.patience,
                    "class_weights": train.class_weights,
                    "positive": train.decision.positive,
                    "val_share": val_share,
                    "stratify": data.stratify,
                    "checkpoint": checkpoint,
                }),
            },
        })
    }
}

/// What is predicted, if the job says so: an objective of numbers takes a few whole numbers as such, which would else be
/// classes, and one of several classes takes many as classes.
pub(crate) fn target(data: &Data, trees: &TreesJob) -> Option<TargetKind> {
    let objective = trees.model.objective.as_deref().unwrap_or_default();
    let of_numbers = ["reg:", "count:", "rank:"];
    let is_of_numbers = of_numbers.iter().any(|kind| objective.starts_with(kind));
    match is_of_numbers || group_of(&data.train).is_some() {
        true => Some(TargetKind::Numbers),
        false => (objective.starts_with("multi:")).then_some(TargetKind::Classes),
    }
}
