//! The settings of the learner of networks.

use crate::sources::image_transform;
use crate::{CheckpointRules, LearningSettings, NetworkPlan, PictureInput};
use lockstep_data::{Augment, Normalisation, PictureChanges, TargetKind};
use lockstep_job::{
    Data, DataRef, JobAugment, JobColumnType, JobLoss, JobNormalise, NetworkJob, Validation,
    hide_secrets,
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
    /// How it learns.
    pub learner: LearningSettings,
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
    pub normalise: Option<Normalisation>,
    /// How pictures become samples, if they do. The encoder is known once the pictures are embedded.
    pub pictures: Option<PictureInput>,
    /// Whether the numbers of a table are brought to one scale; if absent, where it has more than plain numbers.
    #[serde(default)]
    pub standardise: Option<bool>,
    /// Columns of a table for whose values vectors are learned.
    #[serde(default)]
    pub embedded: Vec<String>,
    /// How training images are varied.
    pub augment: Option<ImageChanges>,
    /// When the state is written, and what the best epoch is.
    pub checkpoint: CheckpointRules,
    /// What of the job decides the result, in the words of the job file: what each part of a run may choose for
    /// itself is not in it, nor are secrets.
    pub decides: Value,
}

/// How training images are varied.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ImageChanges {
    /// Where they are cut out and mirrored.
    pub augment: Augment,
    /// What changes beside that.
    pub changes: PictureChanges,
    /// How the shares of two images that are added are spread, if such are.
    pub mixup: Option<f64>,
    /// The same where a part of one image lies over another.
    pub cutmix: Option<f64>,
}

impl ImageChanges {
    fn of(job: &JobAugment) -> Self {
        let number = |number: Option<f64>| number.unwrap_or(0.0) as f32;
        Self {
            augment: Augment {
                crop_padding: job.crop_padding,
                flip: job.flip,
            },
            changes: PictureChanges {
                resized_crop: (job.resized_crop).map(|shares| shares.map(|share| share as f32)),
                rotation: number(job.rotation),
                brightness: number(job.brightness),
                contrast: number(job.contrast),
                saturation: number(job.saturation),
                erase: number(job.erase),
            },
            mixup: job.mixup,
            cutmix: job.cutmix,
        }
    }

    /// Whether images are mixed with others, and what they are to be taken for too.
    pub fn mixes(&self) -> bool {
        self.mixup.is_some() || self.cutmix.is_some()
    }
}

/// The scale of the samples.
pub(crate) fn normalisation(job: &JobNormalise) -> Normalisation {
    Normalisation {
        mean: job.mean.clone(),
        std: job.std.clone(),
    }
}

impl TrainingSettings {
    pub(crate) fn of(data: &Data, job: &NetworkJob) -> Self {
        Self {
            network: NetworkPlan::of(&job.model.network),
            weights: job.model.weights.clone(),
            learner: LearningSettings::of(&job.train.learner),
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
            normalise: data.normalise.as_ref().map(normalisation),
            pictures: image_transform(data)
                .filter(|_| job.embed.is_none())
                .map(|transform| PictureInput {
                    transform,
                    encoder: None,
                }),
            standardise: data.standardise,
            embedded: embedded(&data.train),
            augment: data.augment.as_ref().map(ImageChanges::of),
            checkpoint: CheckpointRules::of(&job.checkpoint),
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
pub(crate) fn target_kind(loss: JobLoss) -> TargetKind {
    match loss {
        JobLoss::CrossEntropy => TargetKind::Classes,
        JobLoss::Mse => TargetKind::Numbers,
        JobLoss::Bce => TargetKind::Labels,
    }
}

/// What of the job decides the result.
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
