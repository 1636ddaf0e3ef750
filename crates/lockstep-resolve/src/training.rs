//! The settings of the learner of networks.

use crate::sources::image_transform;
use crate::{NetworkPlan, PictureInput};
use lockstep_data::TargetKind;
use lockstep_job::{
    Data, DataRef, JobAugment, JobCheckpoint, JobColumnType, JobLoss, JobNormalise, NetworkJob,
    NetworkTraining, Validation, hide_secrets,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::PathBuf;

/// All that the learner of networks is told of a job, beside its data.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrainingSettings {
    /// The network.
    pub network: NetworkPlan,
    /// The file of weights to begin with, in place of random ones.
    pub weights: Option<PathBuf>,
    /// Its own keys of `[train]`.
    pub learner: NetworkTraining,
    /// Worker processes.
    pub workers: usize,
    /// The parts that a batch is cut into.
    pub lanes: usize,
    /// Threads of a worker.
    pub threads: usize,
    /// Where all random numbers come from.
    pub seed: u64,
    /// The share of the training set that is set aside for validation.
    pub val_share: f64,
    /// Whether that is the same share of every class.
    pub stratify: bool,
    /// Whether all classes are drawn equally often.
    #[serde(default)]
    pub balance: bool,
    /// Normalisation of the input.
    pub normalise: Option<JobNormalise>,
    /// How pictures become samples, if they do. The encoder is known once the pictures are embedded.
    pub pictures: Option<PictureInput>,
    /// Whether the numbers of a table are brought to one scale; if absent, where it has more than plain numbers.
    #[serde(default)]
    pub standardise: Option<bool>,
    /// Columns of a table for whose values vectors are learned.
    #[serde(default)]
    pub embedded: Vec<String>,
    /// How training images are varied.
    pub augment: Option<JobAugment>,
    /// When the state is written, and what the best epoch is.
    pub checkpoint: JobCheckpoint,
    /// What of the job decides the result, in the words of the job file: what each part of a run may choose for
    /// itself is not in it, nor are secrets.
    pub decides: Value,
}

impl TrainingSettings {
    pub(crate) fn of(data: &Data, job: &NetworkJob) -> Self {
        Self {
            network: NetworkPlan::of(&job.model.network),
            weights: job.model.weights.clone(),
            learner: job.train.learner.clone(),
            workers: job.train.workers.max,
            lanes: job.train.lanes,
            threads: job.train.threads,
            seed: job.train.seed,
            val_share: match &data.validation {
                Validation::Split(share) => *share,
                Validation::Set(_) => 0.0,
            },
            stratify: data.stratify,
            balance: data.balance,
            normalise: data.normalise.clone(),
            pictures: image_transform(data)
                .filter(|_| job.embed.is_none())
                .map(|transform| PictureInput {
                    transform,
                    encoder: None,
                }),
            standardise: data.standardise,
            embedded: embedded(&data.train),
            augment: data.augment.clone(),
            checkpoint: job.checkpoint.clone(),
            decides: decides(data, job),
        }
    }
}

/// The columns of a table for whose values vectors are learned.
fn embedded(train: &DataRef) -> Vec<String> {
    let (DataRef::Csv { columns, .. } | DataRef::Parquet { columns, .. }) = train else {
        return Vec::new();
    };
    let embedded = columns.types.iter();
    let embedded = embedded.filter(|(_, word)| **word == JobColumnType::Embedding);
    embedded.map(|(name, _)| name.clone()).collect()
}

/// What labels must be for a loss of the job file.
pub fn target_kind(loss: JobLoss) -> TargetKind {
    match loss {
        JobLoss::CrossEntropy => TargetKind::Classes,
        JobLoss::Mse => TargetKind::Numbers,
        JobLoss::Bce => TargetKind::Labels,
    }
}

fn decides(data: &Data, job: &NetworkJob) -> Value {
    let mut value = json!({
        "data": data,
        "model": job.model,
        "train": job.train,
    });
    if let Some(train) = value["train"].as_object_mut() {
        for free in [
            "workers",
            "threads",
            "epochs",
            "onnx",
            "patience",
            "min_change",
        ] {
            train.remove(free);
        }
    }
    hide_secrets(&mut value["data"]);
    value
}
