//! `train.schedule`: how the learning rate changes over the run.

use crate::field::Rule;
use crate::section::Section;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest number of steps: far beyond any run, and a number that TOML can hold.
const MAX_STEPS: u64 = i64::MAX as u64;

/// How the learning rate changes over the run. Every kind may begin with a linear warm-up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Schedule {
    /// It stays as it is.
    Constant {
        /// Steps over which it first rises from 0.
        #[serde(default)]
        warmup_steps: u64,
    },
    /// It is multiplied by `gamma` every few epochs.
    Step {
        /// Epochs between two changes.
        #[schemars(range(min = 1))]
        every_epochs: u32,
        /// What it is multiplied by.
        #[schemars(extend("exclusiveMinimum" = 0))]
        gamma: f64,
        /// Steps over which it first rises from 0.
        #[serde(default)]
        warmup_steps: u64,
    },
    /// It falls along half a cosine.
    Cosine {
        /// Where it ends.
        #[serde(default)]
        #[schemars(extend("minimum" = 0))]
        min_lr: f64,
        /// Steps until it ends there, warm-up included; if left out, those of the whole run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1))]
        steps: Option<u64>,
        /// Steps over which it first rises from 0.
        #[serde(default)]
        warmup_steps: u64,
    },
}

impl Default for Schedule {
    fn default() -> Self {
        Schedule::Constant { warmup_steps: 0 }
    }
}

impl Schedule {
    /// Steps over which the learning rate first rises from 0.
    pub fn warmup_steps(&self) -> u64 {
        match self {
            Schedule::Constant { warmup_steps }
            | Schedule::Step { warmup_steps, .. }
            | Schedule::Cosine { warmup_steps, .. } => *warmup_steps,
        }
    }
}

impl Schedule {
    /// Reads the table; `lr` is the optimizer's, if that could be read.
    pub(crate) fn read(mut section: Section<'_>, lr: Option<f64>) -> Option<Schedule> {
        let kind = section.need(
            "kind",
            "add `kind = \"cosine\"`, `\"step\"` or `\"constant\"`",
        );
        let Some(kind) = kind.and_then(|field| field.one_of(&["constant", "step", "cosine"]))
        else {
            section.give_up();
            return None;
        };
        section.is_of_kind(kind);
        let warmup_steps = section.or("warmup_steps", 0, |field| field.integer(0..=MAX_STEPS));
        let schedule = match kind {
            "constant" => warmup_steps.map(|warmup_steps| Schedule::Constant { warmup_steps }),
            "step" => read_step(&mut section, warmup_steps),
            _ => read_cosine(&mut section, warmup_steps, lr),
        };
        section.finish();
        schedule
    }
}

fn read_step(section: &mut Section<'_>, warmup_steps: Option<u64>) -> Option<Schedule> {
    let every_epochs = section
        .need("every_epochs", "add `every_epochs = 10`")
        .and_then(|field| field.integer(1..=u32::MAX));
    let gamma = section
        .need("gamma", "add `gamma = 0.1`")
        .and_then(|field| field.number(Rule::POSITIVE));
    Some(Schedule::Step {
        every_epochs: every_epochs?,
        gamma: gamma?,
        warmup_steps: warmup_steps?,
    })
}

fn read_cosine(
    section: &mut Section<'_>,
    warmup_steps: Option<u64>,
    lr: Option<f64>,
) -> Option<Schedule> {
    let min_lr = section.or("min_lr", 0.0, |field| {
        let min_lr = field.number(Rule::NOT_NEGATIVE)?;
        match lr {
            Some(lr) if min_lr > lr => field.reject(
                format!("must not be above the optimizer's lr, found {min_lr}"),
                format!("must be at most {lr}"),
            ),
            _ => Some(min_lr),
        }
    });
    let steps = section.maybe("steps", |field| {
        let steps = field.integer(1..=MAX_STEPS)?;
        match warmup_steps {
            Some(warmup) if steps <= warmup => field.reject(
                format!("must be more than the {warmup} warm-up steps, found {steps}"),
                "the warm-up is part of these steps",
            ),
            _ => Some(steps),
        }
    });
    Some(Schedule::Cosine {
        min_lr: min_lr?,
        steps: steps?,
        warmup_steps: warmup_steps?,
    })
}
