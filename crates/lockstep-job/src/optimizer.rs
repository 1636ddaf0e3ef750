//! `train.optimizer`: what turns gradients into new weights. Defaults are PyTorch's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What turns gradients into new weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Optimizer {
    /// Stochastic gradient descent.
    Sgd {
        /// Learning rate.
        #[serde(default = "lr")]
        lr: f64,
        /// Share of the last update that is carried into the next.
        #[serde(default)]
        momentum: f64,
        /// Whether the momentum looks ahead (Nesterov's).
        #[serde(default)]
        nesterov: bool,
        /// Added to the gradient as this share of the weights.
        #[serde(default)]
        weight_decay: f64,
    },
    /// Adam, with weight decay added to the gradient.
    Adam {
        /// Learning rate.
        #[serde(default = "lr")]
        lr: f64,
        /// Decay of the running means of the gradient and of its square.
        #[serde(default = "betas")]
        betas: [f64; 2],
        /// Added to the denominator.
        #[serde(default = "eps")]
        eps: f64,
        /// Added to the gradient as this share of the weights.
        #[serde(default)]
        weight_decay: f64,
    },
    /// Adam with decoupled weight decay.
    #[serde(rename = "adamw")]
    AdamW {
        /// Learning rate.
        #[serde(default = "lr")]
        lr: f64,
        /// Decay of the running means of the gradient and of its square.
        #[serde(default = "betas")]
        betas: [f64; 2],
        /// Added to the denominator.
        #[serde(default = "eps")]
        eps: f64,
        /// Share of the weights that is taken away in a step, times the learning rate.
        #[serde(default = "adamw_weight_decay")]
        weight_decay: f64,
    },
}

impl Optimizer {
    /// The learning rate before any schedule.
    pub fn lr(&self) -> f64 {
        match self {
            Optimizer::Sgd { lr, .. }
            | Optimizer::Adam { lr, .. }
            | Optimizer::AdamW { lr, .. } => *lr,
        }
    }
}

fn lr() -> f64 {
    1e-3
}

fn betas() -> [f64; 2] {
    [0.9, 0.999]
}

fn eps() -> f64 {
    1e-8
}

fn adamw_weight_decay() -> f64 {
    1e-2
}
