//! The job file's words in the terms of the model: optimizer and schedule.

use lockstep_job::{JobOptimizer, JobSchedule};
use lockstep_nn::{Decay, Optimizer, Schedule};
use lockstep_resolve::TrainingSettings;

/// The job's optimizer.
pub(crate) fn optimizer(settings: &TrainingSettings) -> Optimizer {
    let adam = |betas: [f64; 2], eps: f64, weight_decay: f64, decoupled| Optimizer::Adam {
        betas: betas.map(|beta| beta as f32),
        epsilon: eps as f32,
        weight_decay: weight_decay as f32,
        decoupled,
    };
    match settings.learner.optimizer {
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
        JobOptimizer::RmsProp {
            alpha,
            eps,
            momentum,
            weight_decay,
            ..
        } => Optimizer::RmsProp {
            alpha: alpha as f32,
            epsilon: eps as f32,
            momentum: momentum as f32,
            weight_decay: weight_decay as f32,
        },
        JobOptimizer::Lion {
            betas,
            weight_decay,
            ..
        } => Optimizer::Lion {
            betas: betas.map(|beta| beta as f32),
            weight_decay: weight_decay as f32,
        },
    }
}

/// The job's learning rate over a run with so many steps an epoch.
pub(crate) fn schedule(settings: &TrainingSettings, steps_per_epoch: u64) -> Schedule {
    let total = steps_per_epoch * u64::from(settings.learner.epochs);
    let decay = match settings.learner.schedule {
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
        JobSchedule::Plateau { factor, min_lr, .. } => Decay::Plateau {
            factor: factor as f32,
            min: min_lr as f32,
            cuts: 0,
        },
        JobSchedule::OneCycle {
            pct_start,
            div_factor,
            final_div_factor,
            steps,
        } => Decay::OneCycle {
            steps: steps.unwrap_or(total),
            pct_start: pct_start as f32,
            div_factor: div_factor as f32,
            final_div_factor: final_div_factor as f32,
        },
    };
    Schedule {
        base: settings.learner.optimizer.lr() as f32,
        warmup: settings.learner.schedule.warmup_steps(),
        decay,
    }
}
