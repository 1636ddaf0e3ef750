//! `train.optimizer`: what turns gradients into new weights. Defaults are PyTorch's.

use crate::field::{Field, Rule};
use crate::keys::{Any, Check, Each, SchemaLimits, kinds};
use crate::section::Section;
use serde_json::{Map, Value};

kinds! {
    /// What turns gradients into new weights.
    pub enum JobOptimizer {
        /// Stochastic gradient descent.
        "sgd" Sgd {
            /// Learning rate.
            lr: f64 = default(LR) => Rule::POSITIVE;
            /// Share of the last update that is carried into the next.
            momentum: f64 = default(0.0) => Rule::BELOW_ONE;
            /// Whether the momentum looks ahead (Nesterov's).
            nesterov: bool = default(false) => Any, |field, nesterov| match momentum {
                Some(0.0) if nesterov => field.reject("needs momentum", "set `momentum` above 0 with it"),
                _ => Some(nesterov),
            };
            /// Added to the gradient as this share of the weights.
            weight_decay: f64 = default(0.0) => Rule::NOT_NEGATIVE;
        }
        /// Adam, with weight decay added to the gradient.
        "adam" Adam {
            /// Learning rate.
            lr: f64 = default(LR) => Rule::POSITIVE;
            /// Decay of the running means of the gradient and of its square.
            betas: [f64; 2] = default(BETAS) => Betas;
            /// Added to the denominator.
            eps: f64 = default(EPS) => Rule::POSITIVE;
            /// Added to the gradient as this share of the weights.
            weight_decay: f64 = default(0.0) => Rule::NOT_NEGATIVE;
        }
        /// Adam with decoupled weight decay.
        "adamw" AdamW {
            /// Learning rate.
            lr: f64 = default(LR) => Rule::POSITIVE;
            /// Decay of the running means of the gradient and of its square.
            betas: [f64; 2] = default(BETAS) => Betas;
            /// Added to the denominator.
            eps: f64 = default(EPS) => Rule::POSITIVE;
            /// Share of the weights that is taken away in a step, times the learning rate.
            weight_decay: f64 = default(DECAY) => Rule::NOT_NEGATIVE;
        }
        /// RMSprop: each weight's gradient is divided by a running mean of its size.
        "rmsprop" RmsProp {
            /// Learning rate.
            lr: f64 = default(1e-2) => Rule::POSITIVE;
            /// Decay of the running mean of the gradient's square.
            alpha: f64 = default(0.99) => Rule::BELOW_ONE;
            /// Added to the denominator.
            eps: f64 = default(EPS) => Rule::POSITIVE;
            /// Share of the last update that is carried into the next.
            momentum: f64 = default(0.0) => Rule::BELOW_ONE;
            /// Added to the gradient as this share of the weights.
            weight_decay: f64 = default(0.0) => Rule::NOT_NEGATIVE;
        }
        /// Lion: every weight moves by the learning rate, in the direction of a running mean of its gradient.
        "lion" Lion {
            /// Learning rate.
            lr: f64 = default(1e-4) => Rule::POSITIVE;
            /// How much of the running mean is in the direction, and how much of it is kept.
            betas: [f64; 2] = default([0.9, 0.99]) => Betas;
            /// Share of the weights that is taken away in a step, times the learning rate.
            weight_decay: f64 = default(0.0) => Rule::NOT_NEGATIVE;
        }
    }
}

const LR: f64 = 1e-3;
const BETAS: [f64; 2] = [0.9, 0.999];
const EPS: f64 = 1e-8;
/// Of AdamW.
const DECAY: f64 = 1e-2;

impl Default for JobOptimizer {
    fn default() -> Self {
        JobOptimizer::AdamW {
            lr: LR,
            betas: BETAS,
            eps: EPS,
            weight_decay: DECAY,
        }
    }
}

impl JobOptimizer {
    /// The learning rate before any schedule.
    pub fn lr(&self) -> f64 {
        match self {
            JobOptimizer::Sgd { lr, .. }
            | JobOptimizer::Adam { lr, .. }
            | JobOptimizer::AdamW { lr, .. }
            | JobOptimizer::RmsProp { lr, .. }
            | JobOptimizer::Lion { lr, .. } => *lr,
        }
    }
}

impl JobOptimizer {
    pub(crate) fn read(section: Section<'_>) -> Option<JobOptimizer> {
        let fix = "add `kind = \"sgd\"`, `\"adam\"`, `\"adamw\"`, `\"rmsprop\"` or `\"lion\"`";
        section.of_kind(fix, JobOptimizer::KINDS, JobOptimizer::read_keys)
    }
}

/// Two numbers below 1.
struct Betas;

impl SchemaLimits for Betas {
    fn describe(&self, schema: &mut Map<String, Value>) {
        Each(Rule::BELOW_ONE).describe(schema);
    }
}

impl Check<[f64; 2]> for Betas {
    fn read(&self, field: &Field<'_>) -> Option<[f64; 2]> {
        match <[f64; 2]>::try_from(Each(Rule::BELOW_ONE).read(field)?) {
            Ok(betas) => Some(betas),
            Err(values) => field.reject(
                format!("must be two numbers, found {}", values.len()),
                "for example [0.9, 0.999]",
            ),
        }
    }
}
