//! `train.optimizer`: what turns gradients into new weights. Defaults are PyTorch's.

use crate::field::Rule;
use crate::section::Section;
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
        #[schemars(extend("exclusiveMinimum" = 0))]
        lr: f64,
        /// Share of the last update that is carried into the next.
        #[serde(default)]
        #[schemars(extend("minimum" = 0, "exclusiveMaximum" = 1))]
        momentum: f64,
        /// Whether the momentum looks ahead (Nesterov's).
        #[serde(default)]
        nesterov: bool,
        /// Added to the gradient as this share of the weights.
        #[serde(default)]
        #[schemars(extend("minimum" = 0))]
        weight_decay: f64,
    },
    /// Adam, with weight decay added to the gradient.
    Adam {
        /// Learning rate.
        #[serde(default = "lr")]
        #[schemars(extend("exclusiveMinimum" = 0))]
        lr: f64,
        /// Decay of the running means of the gradient and of its square.
        #[serde(default = "betas")]
        #[schemars(inner(range(min = 0, max = 1)))]
        betas: [f64; 2],
        /// Added to the denominator.
        #[serde(default = "eps")]
        #[schemars(extend("exclusiveMinimum" = 0))]
        eps: f64,
        /// Added to the gradient as this share of the weights.
        #[serde(default)]
        #[schemars(extend("minimum" = 0))]
        weight_decay: f64,
    },
    /// Adam with decoupled weight decay.
    #[serde(rename = "adamw")]
    AdamW {
        /// Learning rate.
        #[serde(default = "lr")]
        #[schemars(extend("exclusiveMinimum" = 0))]
        lr: f64,
        /// Decay of the running means of the gradient and of its square.
        #[serde(default = "betas")]
        #[schemars(inner(range(min = 0, max = 1)))]
        betas: [f64; 2],
        /// Added to the denominator.
        #[serde(default = "eps")]
        #[schemars(extend("exclusiveMinimum" = 0))]
        eps: f64,
        /// Share of the weights that is taken away in a step, times the learning rate.
        #[serde(default = "adamw_weight_decay")]
        #[schemars(extend("minimum" = 0))]
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

impl Optimizer {
    pub(crate) fn read(mut section: Section<'_>) -> Option<Optimizer> {
        let kind = section.need("kind", "add `kind = \"sgd\"`, `\"adam\"` or `\"adamw\"`");
        let Some(kind) = kind.and_then(|field| field.one_of(&["sgd", "adam", "adamw"])) else {
            section.give_up();
            return None;
        };
        section.is_of_kind(kind);
        let lr = section.or("lr", lr(), |field| field.number(Rule::POSITIVE));
        let optimizer = match kind {
            "sgd" => read_sgd(&mut section, lr),
            "adam" => read_adam(&mut section, lr),
            _ => read_adamw(&mut section, lr),
        };
        section.finish();
        optimizer
    }
}

fn read_sgd(section: &mut Section<'_>, lr: Option<f64>) -> Option<Optimizer> {
    let momentum = section.or("momentum", 0.0, |field| field.number(Rule::BELOW_ONE));
    let nesterov = section.or("nesterov", false, |field| {
        let nesterov = field.boolean()?;
        if nesterov && momentum == Some(0.0) {
            return field.reject("needs momentum", "set `momentum` above 0 with it");
        }
        Some(nesterov)
    });
    let weight_decay = read_weight_decay(section, 0.0);
    Some(Optimizer::Sgd {
        lr: lr?,
        momentum: momentum?,
        nesterov: nesterov?,
        weight_decay: weight_decay?,
    })
}

fn read_adam(section: &mut Section<'_>, lr: Option<f64>) -> Option<Optimizer> {
    let (betas, eps) = (read_betas(section), read_eps(section));
    let weight_decay = read_weight_decay(section, 0.0);
    Some(Optimizer::Adam {
        lr: lr?,
        betas: betas?,
        eps: eps?,
        weight_decay: weight_decay?,
    })
}

fn read_adamw(section: &mut Section<'_>, lr: Option<f64>) -> Option<Optimizer> {
    let (betas, eps) = (read_betas(section), read_eps(section));
    let weight_decay = read_weight_decay(section, adamw_weight_decay());
    Some(Optimizer::AdamW {
        lr: lr?,
        betas: betas?,
        eps: eps?,
        weight_decay: weight_decay?,
    })
}

fn read_betas(section: &mut Section<'_>) -> Option<[f64; 2]> {
    section.or("betas", betas(), |field| {
        let values = field.all(|beta| beta.number(Rule::BELOW_ONE))?;
        match <[f64; 2]>::try_from(values) {
            Ok(betas) => Some(betas),
            Err(values) => field.reject(
                format!("must be two numbers, found {}", values.len()),
                "for example [0.9, 0.999]",
            ),
        }
    })
}

fn read_eps(section: &mut Section<'_>) -> Option<f64> {
    section.or("eps", eps(), |field| field.number(Rule::POSITIVE))
}

fn read_weight_decay(section: &mut Section<'_>, default: f64) -> Option<f64> {
    section.or("weight_decay", default, |field| {
        field.number(Rule::NOT_NEGATIVE)
    })
}
