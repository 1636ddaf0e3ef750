//! `train.schedule`: how the learning rate changes over the run.

use crate::field::{Field, Rule};
use crate::keys::kinds;
use crate::section::Section;

/// The largest number of steps: far beyond any run, and a number that TOML can hold.
const MAX_STEPS: u64 = i64::MAX as u64;

kinds! {
    /// How the learning rate changes over the run. Every kind may begin with a linear warm-up.
    pub enum JobSchedule given (lr: Option<f64>) {
        /// It stays as it is.
        "constant" Constant {
            /// Steps over which it first rises from 0.
            warmup_steps: u64 = default(0) => 0..=MAX_STEPS;
        }
        /// It is multiplied by `gamma` every few epochs.
        "step" Step {
            /// Epochs between two changes.
            every_epochs: u32 = need("add `every_epochs = 10`") => 1..=u32::MAX;
            /// What it is multiplied by.
            gamma: f64 = need("add `gamma = 0.1`") => Rule::POSITIVE;
            /// Steps over which it first rises from 0.
            warmup_steps: u64 = default(0) => 0..=MAX_STEPS;
        }
        /// It falls along half a cosine.
        "cosine" Cosine {
            /// Where it ends.
            min_lr: f64 = default(0.0) => Rule::NOT_NEGATIVE, |field, min_lr| not_above(field, min_lr, lr);
            /// Steps until it ends there, warm-up included; if left out, those of the whole run.
            steps: Option<u64> = optional => 1..=MAX_STEPS;
            /// Steps over which it first rises from 0.
            warmup_steps: u64 = default(0) => 0..=MAX_STEPS;
        }
        /// It is multiplied by `factor` whenever validation does not get better for a while.
        "plateau" Plateau {
            /// What it is multiplied by.
            factor: f64 = default(0.1) => Rule::BELOW_ONE, |field, factor| match factor > 0.0 {
                true => Some(factor),
                false => field.reject("must be greater than 0", "for example 0.1"),
            };
            /// Epochs without a better value of `checkpoint.best` on validation data after which that happens.
            patience: u32 = default(10) => 1..=u32::MAX;
            /// By how much more than nothing that value must get better to count.
            min_change: f64 = default(0.0) => Rule::NOT_NEGATIVE;
            /// It does not fall below this.
            min_lr: f64 = default(0.0) => Rule::NOT_NEGATIVE, |field, min_lr| not_above(field, min_lr, lr);
            /// Steps over which it first rises from 0.
            warmup_steps: u64 = default(0) => 0..=MAX_STEPS;
        }
        /// It climbs from a part of the optimizer's `lr` to all of it, and falls to next to nothing, along half a
        /// cosine each.
        "one-cycle" OneCycle {
            /// The share of the steps in which it climbs.
            pct_start: f64 = default(0.3) => Rule::SHARE;
            /// It begins at `lr / div_factor`.
            div_factor: f64 = default(25.0) => Rule::POSITIVE;
            /// It ends so many times below where it began.
            final_div_factor: f64 = default(1e4) => Rule::POSITIVE;
            /// Steps of the cycle; if left out, those of the whole run.
            steps: Option<u64> = optional => 1..=MAX_STEPS;
        }
    }
}

/// A rate that others fall to.
fn not_above(field: &Field<'_>, min_lr: f64, lr: Option<f64>) -> Option<f64> {
    match lr {
        Some(lr) if min_lr > lr => field.reject(
            format!("must not be above the optimizer's lr, found {min_lr}"),
            format!("must be at most {lr}"),
        ),
        _ => Some(min_lr),
    }
}

impl Default for JobSchedule {
    fn default() -> Self {
        JobSchedule::Constant { warmup_steps: 0 }
    }
}

impl JobSchedule {
    /// Steps over which the learning rate first rises from 0.
    pub fn warmup_steps(&self) -> u64 {
        match self {
            JobSchedule::Constant { warmup_steps }
            | JobSchedule::Step { warmup_steps, .. }
            | JobSchedule::Cosine { warmup_steps, .. }
            | JobSchedule::Plateau { warmup_steps, .. } => *warmup_steps,
            JobSchedule::OneCycle { .. } => 0,
        }
    }
}

impl JobSchedule {
    /// Reads the table; `lr` is the optimizer's, if that could be read.
    pub(crate) fn read(section: Section<'_>, lr: Option<f64>) -> Option<JobSchedule> {
        let fix =
            "add `kind = \"cosine\"`, `\"one-cycle\"`, `\"plateau\"`, `\"step\"` or `\"constant\"`";
        section.of_kind(fix, JobSchedule::KINDS, |kind, section| {
            let schedule = JobSchedule::read_keys(kind, section, lr)?;
            match schedule {
                JobSchedule::Cosine {
                    steps: Some(steps),
                    warmup_steps,
                    ..
                } if steps <= warmup_steps => section.get("steps")?.reject(
                    format!("must be more than the {warmup_steps} warm-up steps, found {steps}"),
                    "the warm-up is part of these steps",
                ),
                schedule => Some(schedule),
            }
        })
    }
}
