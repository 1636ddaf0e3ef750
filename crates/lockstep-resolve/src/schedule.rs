//! The learning rate over a run whose number of steps is not known yet.

use lockstep_job::JobSchedule;
use lockstep_nn::{Decay, Schedule};
use serde::{Deserialize, Serialize};

/// How the learning rate changes over a run. How many steps an epoch has is known once the data is. It is written as the
/// job file writes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateSchedule {
    /// The rate after the warm-up.
    base: f32,
    schedule: JobSchedule,
}

impl RateSchedule {
    /// Of an optimizer with this learning rate.
    pub(crate) fn of(schedule: &JobSchedule, lr: f64) -> Self {
        Self {
            base: lr as f32,
            schedule: schedule.clone(),
        }
    }

    /// Steps over which it first rises from 0.
    pub fn warmup(&self) -> u64 {
        self.schedule.warmup_steps()
    }

    /// The rate over a run of so many epochs of so many steps.
    pub fn over(&self, epochs: u32, steps_per_epoch: u64) -> Schedule {
        let total = steps_per_epoch * u64::from(epochs);
        let decay = match self.schedule {
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
            base: self.base,
            warmup: self.warmup(),
            decay,
        }
    }

    /// After how many epochs that are not better by more than which change a plateau ends, if that cuts the rate.
    pub fn plateau(&self) -> Option<(u32, f64)> {
        match self.schedule {
            JobSchedule::Plateau {
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
            self.schedule,
            JobSchedule::Cosine { steps: None, .. } | JobSchedule::OneCycle { steps: None, .. }
        )
    }
}
