//! The learning rate over a run whose number of steps is not known yet.

use lockstep_job::JobSchedule;
use lockstep_nn::{Decay, Schedule};
use serde::{Deserialize, Serialize};

/// How the learning rate changes over a run. How many steps an epoch has is known once the data is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RateSchedule {
    /// The rate after the warm-up.
    base: f32,
    /// Steps over which it first rises from 0.
    pub warmup: u64,
    decay: RateDecay,
}

/// What the rate does after the warm-up, as [`Decay`] has it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
enum RateDecay {
    Constant,
    Step {
        every_epochs: u32,
        gamma: f32,
    },
    Cosine {
        /// Those of the whole run if none are given.
        steps: Option<u64>,
        min: f32,
    },
    Plateau {
        factor: f32,
        min: f32,
        patience: u32,
        min_change: f64,
    },
    OneCycle {
        /// Those of the whole run if none are given.
        steps: Option<u64>,
        pct_start: f32,
        div_factor: f32,
        final_div_factor: f32,
    },
}

impl RateSchedule {
    /// Of an optimizer with this learning rate.
    pub(crate) fn of(schedule: &JobSchedule, lr: f64) -> Self {
        let decay = match *schedule {
            JobSchedule::Constant { .. } => RateDecay::Constant,
            JobSchedule::Step {
                every_epochs,
                gamma,
                ..
            } => RateDecay::Step {
                every_epochs,
                gamma: gamma as f32,
            },
            JobSchedule::Cosine { min_lr, steps, .. } => RateDecay::Cosine {
                steps,
                min: min_lr as f32,
            },
            JobSchedule::Plateau {
                factor,
                patience,
                min_change,
                min_lr,
                ..
            } => RateDecay::Plateau {
                factor: factor as f32,
                min: min_lr as f32,
                patience,
                min_change,
            },
            JobSchedule::OneCycle {
                pct_start,
                div_factor,
                final_div_factor,
                steps,
            } => RateDecay::OneCycle {
                steps,
                pct_start: pct_start as f32,
                div_factor: div_factor as f32,
                final_div_factor: final_div_factor as f32,
            },
        };
        Self {
            base: lr as f32,
            warmup: schedule.warmup_steps(),
            decay,
        }
    }

    /// The rate over a run of so many epochs of so many steps.
    pub fn over(&self, epochs: u32, steps_per_epoch: u64) -> Schedule {
        let total = steps_per_epoch * u64::from(epochs);
        let decay = match self.decay {
            RateDecay::Constant => Decay::Constant,
            RateDecay::Step {
                every_epochs,
                gamma,
            } => Decay::Step {
                every: u64::from(every_epochs) * steps_per_epoch,
                gamma,
            },
            RateDecay::Cosine { steps, min } => Decay::Cosine {
                steps: steps.unwrap_or(total),
                min,
            },
            RateDecay::Plateau { factor, min, .. } => Decay::Plateau {
                factor,
                min,
                cuts: 0,
            },
            RateDecay::OneCycle {
                steps,
                pct_start,
                div_factor,
                final_div_factor,
            } => Decay::OneCycle {
                steps: steps.unwrap_or(total),
                pct_start,
                div_factor,
                final_div_factor,
            },
        };
        Schedule {
            base: self.base,
            warmup: self.warmup,
            decay,
        }
    }

    /// After how many epochs that are not better by more than which change a plateau ends, if that cuts the rate.
    pub fn plateau(&self) -> Option<(u32, f64)> {
        match self.decay {
            RateDecay::Plateau {
                patience,
                min_change,
                ..
            } => Some((patience, min_change)),
            _ => None,
        }
    }

    /// Whether the rate depends on the steps of the whole run.
    pub fn is_over_whole_run(&self) -> bool {
        matches!(
            self.decay,
            RateDecay::Cosine { steps: None, .. } | RateDecay::OneCycle { steps: None, .. }
        )
    }
}
