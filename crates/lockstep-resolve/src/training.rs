//! The settings of the learner of networks.

use crate::parts::split_rule;
use crate::sources::image_transform;
use crate::{CheckpointRules, LearningSettings, NetworkPlan, PictureInput, device};
use lockstep_cuda::DeviceChoice;
use lockstep_data::{
    Augment, DataError, Dataset, Encoding, Normalisation, Normaliser, PictureChanges, SplitRule,
    TargetKind,
};
use lockstep_job::{
    Data, DataRef, JobAugment, JobColumnType, JobLoss, JobNormalise, NetworkJob, hide_secrets,
};
use lockstep_measure::OwnMetric;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::PathBuf;

/// All that the learner of networks is told of a job, beside its data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Threads of a worker, if the job says how many.
    #[serde(default)]
    pub threads: Option<usize>,
    /// What the network is computed on.
    pub device: DeviceChoice,
    /// Bytes of a GPU's memory that the training set may take there.
    pub gpu_data: u64,
    /// Whether all layers are exchanged as gradients, since a worker may have a device that hands out nothing else. The
    /// same for the whole gang.
    pub gradients_only: bool,
    /// Where all random numbers come from.
    pub seed: u64,
    /// The share of the training set that is set aside for validation, where nothing else parts it.
    pub val_share: f64,
    /// How one set was parted into those of the job, if it was.
    pub split: Option<SplitRule>,
    /// Whether that is the same share of every class.
    pub stratify: bool,
    /// Whether all classes are drawn equally often.
    #[serde(default)]
    pub balance: bool,
    /// Normalisation of the input.
    pub normalise: Option<Normalisation>,
    /// How pictures become samples, if they do. The encoder is known once the pictures are embedded.
    pub pictures: Option<PictureInput>,
    /// Whether the numbers of a table are brought to one scale.
    pub standardise: bool,
    /// Columns of a table for whose values vectors are learned.
    #[serde(default)]
    pub embedded: Vec<String>,
    /// How training images are varied.
    pub augment: Option<ImageChanges>,
    /// When the state is written, and what the best epoch is.
    pub checkpoint: CheckpointRules,
    /// Metrics of the job's own.
    #[serde(default)]
    pub metrics: Vec<OwnMetric>,
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
        let split = split_rule(data, job.train.seed);
        Self {
            network: NetworkPlan::of(&job.model.network),
            weights: job.model.weights.clone(),
            learner: LearningSettings::of(&job.train.learner),
            workers: job.train.workers.max,
            lanes: job.train.lanes,
            threads: job.train.threads,
            device: device(job.train.device),
            gpu_data: job.train.gpu_data.0,
            gradients_only: false,
            seed: job.train.seed,
            val_share: match split {
                Some(_) => 0.0,
                None => data.validation.share(),
            },
            split,
            stratify: data.stratify,
            balance: data.balance,
            normalise: data.normalise.as_ref().map(normalisation),
            pictures: image_transform(data)
                .filter(|_| job.embed.is_none())
                .map(|transform| PictureInput {
                    transform,
                    encoder: None,
                }),
            // Who names a scale does not want another.
            standardise: data.standardise.unwrap_or(data.normalise.is_none()),
            embedded: embedded(&data.train),
            augment: data.augment.as_ref().map(ImageChanges::of),
            checkpoint: CheckpointRules::of(&job.checkpoint, &job.metrics),
            metrics: job.metrics.0.clone(),
            decides: decides(data, job),
        }
    }

    /// How samples become the network's input. What depends on the numbers of a table is fitted to the rows of `train`
    /// that are trained on.
    ///
    /// # Errors
    /// When the scale that the job names does not fit the samples.
    pub fn normaliser(&self, train: &Dataset, rows: &[u32]) -> Result<Normaliser, DataError> {
        let channels = train.shape()[0];
        match Encoding::fit(train, rows, self.standardise, &self.embedded) {
            Some(_) if self.normalise.is_some() => Err(DataError::Setting {
                setting: "normalisation",
                reason: "the columns of this table are brought to a scale by their own means and deviations; \
                         leave data.normalise out"
                    .to_owned(),
            }),
            Some(encoding) => Ok(Normaliser::encoded(channels, encoding)),
            None => Normaliser::of(self.normalise.as_ref(), channels),
        }
    }
}

/// The columns of a table for whose values vectors are learned.
fn embedded(train: &DataRef) -> Vec<String> {
    let columns = train.columns();
    let embedded = columns.into_iter().flat_map(|columns| &columns.types);
    let embedded = embedded.filter(|(_, word)| **word == JobColumnType::Embedding);
    embedded.map(|(name, _)| name.clone()).collect()
}

/// What labels must be for a loss of the job file.
pub(crate) fn target_kind(loss: JobLoss) -> TargetKind {
    match loss {
        JobLoss::CrossEntropy | JobLoss::Focal => TargetKind::Classes,
        JobLoss::Mse | JobLoss::Mae | JobLoss::Huber | JobLoss::Quantile => TargetKind::Numbers,
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
            "device",
            "gpu_data",
            "epochs",
            "onnx",
            "patience",
            "min_change",
            "threshold",
        ] {
            train.remove(free);
        }
    }
    hide_secrets(&mut value["data"]);
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_job::Job;
    use std::path::Path;

    /// Numbers that no short fraction is, in every place that has one.
    const JOB: &str = "name = 'x'
[data]
train = 'mnist'
val_split = 0.1234567890123456789
normalise = { mean = [0.1307000001], std = [0.30810000012] }
augment = { rotation = 7.7, brightness = 0.123456789, mixup = 0.2000000003, resized_crop = [0.08, 0.99] }
[model]
kind = 'mlp'
hidden = [3]
dropout = 0.3000000004
[train]
epochs = 3
batch = 2
label_smoothing = 0.1000000005
optimizer = { kind = 'adam', lr = 0.0012345678912345, eps = 1.1e-9, betas = [0.91234567, 0.998877665544] }
schedule = { kind = 'plateau', factor = 0.123456789, min_change = 1.2345678e-7, min_lr = 1e-7 }
rates = { layers = 0.3333333333333333 }
clip_norm = 1.0000000001
average = 0.99912345678
patience = 2
min_change = 1e-9
[checkpoint]
every = '0.1 s'
best = 'f1'
";

    fn settings(text: &str) -> TrainingSettings {
        let path = Path::new("/jobs/job.toml");
        let job = Job::parse(path, text, &[], None).unwrap();
        TrainingSettings::of(job.data.as_ref().unwrap(), job.network(path).unwrap())
    }

    #[test]
    fn what_travels_to_workers_arrives_to_the_bit() {
        let settings = settings(JOB);
        let text = serde_json::to_string(&settings).unwrap();
        let told: TrainingSettings = serde_json::from_str(&text).unwrap();
        assert_eq!(told, settings);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            serde_json::from_value::<TrainingSettings>(value).unwrap(),
            settings
        );
        let value = serde_json::to_value(&settings).unwrap().to_string();
        assert_eq!(
            serde_json::from_str::<TrainingSettings>(&value).unwrap(),
            settings
        );
    }

    #[test]
    fn a_rate_over_the_whole_run_knows_its_steps_once_the_data_is_known() {
        let schedule = |keys: &str| {
            let plateau = JOB.find("schedule = ").unwrap();
            let end = plateau + JOB[plateau..].find('\n').unwrap();
            let text = format!("{}schedule = {{ {keys} }}{}", &JOB[..plateau], &JOB[end..]);
            settings(&text).learner.schedule
        };
        let cosine = schedule("kind = 'cosine'");
        assert!(cosine.is_over_whole_run());
        assert_eq!(
            cosine.over(3, 7),
            schedule("kind = 'cosine', steps = 21").over(9, 9)
        );
        assert!(!schedule("kind = 'cosine', steps = 21").is_over_whole_run());
        let step = schedule("kind = 'step', every_epochs = 2, gamma = 0.5, warmup_steps = 4");
        let rate = |step_number| step.over(3, 7).rate(step_number);
        assert_eq!(rate(14), rate(13) * 0.5);
        assert_eq!((step.warmup(), step.plateau()), (4, None));
        assert_eq!(
            settings(JOB).learner.schedule.plateau(),
            Some((10, 1.234_567_8e-7))
        );
    }
}
