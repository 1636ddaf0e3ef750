//! The job file's words in the terms of the other crates: optimizer, schedule, sources of data.

use lockstep_data::{CifarSplit, Source};
use lockstep_job::{DataRef, Job, Optimizer as JobOptimizer, Schedule as JobSchedule, Split};
use lockstep_nn::{Decay, Optimizer, Schedule};

/// The job's optimizer.
pub(crate) fn optimizer(job: &Job) -> Optimizer {
    let adam = |betas: [f64; 2], eps: f64, weight_decay: f64, decoupled| Optimizer::Adam {
        betas: betas.map(|beta| beta as f32),
        epsilon: eps as f32,
        weight_decay: weight_decay as f32,
        decoupled,
    };
    match job.train.optimizer {
        JobOptimizer::Sgd {
            momentum,
            nesterov,
            weight_decay,
            ..
        } => Optimizer::Sgd {
            momentum: momentum as f32,
            nesterov,
            weight_decay: weight_decay as f32,
        },
        JobOptimizer::Adam {
            betas,
            eps,
            weight_decay,
            ..
        } => adam(betas, eps, weight_decay, false),
        JobOptimizer::AdamW {
            betas,
            eps,
            weight_decay,
            ..
        } => adam(betas, eps, weight_decay, true),
    }
}

/// The job's learning rate over a run with so many steps an epoch.
pub(crate) fn schedule(job: &Job, steps_per_epoch: u64) -> Schedule {
    let total = steps_per_epoch * u64::from(job.train.epochs);
    let decay = match job.train.schedule {
        JobSchedule::Constant { .. } => Decay::Constant,
        JobSchedule::Step {
            every_epochs,
            gamma,
            ..
        } => Decay::Step {
            every: u64::from(every_epochs) * steps_per_epoch,
            gamma: gamma as f32,
        },
        JobSchedule::Cosine { min_lr, steps, .. } => Decay::Cosine {
            steps: steps.unwrap_or(total),
            min: min_lr as f32,
        },
    };
    Schedule {
        base: job.train.optimizer.lr() as f32,
        warmup: job.train.schedule.warmup_steps(),
        decay,
    }
}

/// Where a reference to data leads.
pub(crate) fn source(reference: &DataRef) -> Source {
    match reference {
        DataRef::Known { name, split } => Source::Known {
            name: name.clone(),
            split: split.clone(),
        },
        DataRef::Idx { images, labels } => Source::Idx {
            images: images.clone(),
            labels: labels.clone(),
            class_names: None,
        },
        DataRef::CifarFolder { folder, split } => Source::CifarFolder {
            folder: folder.clone(),
            split: match split {
                Split::Train => CifarSplit::Train,
                Split::Test => CifarSplit::Test,
            },
        },
        DataRef::CifarFiles { files } => Source::CifarFiles {
            files: files.clone(),
        },
    }
}
