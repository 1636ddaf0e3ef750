//! `reference.json` as types, and what it means to agree with it.

mod curve;
mod network;

use curve::CurveCase;
use lockstep_nn::{Decay, Dims, Layout, LossSum, NamedLayer, Optimizer, Role, Schedule};
pub(crate) use network::narrower;
use network::{Layer, Shape, sequential};
use serde::Deserialize;
use std::collections::BTreeMap;

/// How far a number may be from PyTorch's.
pub(crate) const TOLERANCE: f64 = 1e-4;

/// All that `make_reference.py` wrote.
#[derive(Deserialize)]
pub(crate) struct Reference {
    pub(crate) models: Vec<ModelCase>,
    pub(crate) curves: Vec<CurveCase>,
    pub(crate) optimizers: Vec<OptimizerCase>,
    pub(crate) schedules: Vec<ScheduleCase>,
}

impl Reference {
    pub(crate) fn load() -> Self {
        serde_json::from_str(include_str!("reference.json")).expect("reference.json can be read")
    }
}

/// Tensors by their names, in PyTorch's order.
pub(crate) type Tensors = BTreeMap<String, Vec<f64>>;

/// A model, the rows it saw, and what PyTorch made of them.
#[derive(Deserialize)]
pub(crate) struct ModelCase {
    pub(crate) name: String,
    layers: Vec<Layer>,
    pub(crate) batch: usize,
    input: Shape,
    /// Row by row, channels innermost.
    pub(crate) inputs: Vec<f32>,
    pub(crate) labels: Vec<u32>,
    state: Tensors,
    pub(crate) trained: Loss,
    pub(crate) evaluated: Loss,
    pub(crate) gradients: Tensors,
    /// The running statistics after the step.
    pub(crate) statistics: Tensors,
}

impl ModelCase {
    pub(crate) fn layers(&self) -> Vec<NamedLayer> {
        sequential("layers", &self.layers)
    }

    pub(crate) fn input(&self) -> Dims {
        self.input.into()
    }

    /// The state vector that PyTorch had before the step.
    pub(crate) fn state(&self, layout: &Layout) -> Vec<f32> {
        let mut state = vec![f32::NAN; layout.len()];
        assert_eq!(self.state.len(), layout.tensors.len(), "{}", self.name);
        for tensor in &layout.tensors {
            let theirs = tensor.from_torch(&self.state[&tensor.name]);
            for (ours, theirs) in state[tensor.range.clone()].iter_mut().zip(theirs) {
                *ours = theirs as f32;
            }
        }
        state
    }

    /// Compares the tensors of one role, as they lie in `ours`, with PyTorch's.
    pub(crate) fn assert_tensors_agree(&self, ours: &[f32], layout: &Layout, role: Role) {
        let theirs = match role {
            Role::Parameter => &self.gradients,
            Role::Statistic => &self.statistics,
        };
        let of_role = || layout.tensors.iter().filter(|tensor| tensor.role == role);
        assert_eq!(of_role().count(), theirs.len(), "{}", self.name);
        for tensor in of_role() {
            let theirs = tensor.from_torch(&theirs[&tensor.name]);
            let what = format!("{}, {}", self.name, tensor.name);
            assert_agree(&what, &ours[tensor.range.clone()], &theirs, TOLERANCE);
        }
    }
}

/// The loss of some rows, summed.
#[derive(Deserialize)]
pub(crate) struct Loss {
    loss: f64,
    correct: u64,
}

impl Loss {
    pub(crate) fn assert_agrees(&self, what: &str, ours: LossSum) {
        assert_agree(what, &[ours.loss as f32], &[self.loss], TOLERANCE);
        assert_eq!(ours.correct, self.correct, "{what}: rows that are right");
    }
}

/// Five steps of an optimizer on given gradients.
#[derive(Deserialize)]
pub(crate) struct OptimizerCase {
    #[serde(flatten)]
    settings: Settings,
    pub(crate) start: Vec<f32>,
    /// The learning rate of every step.
    pub(crate) rates: Vec<f32>,
    /// The gradients, step after step.
    pub(crate) gradients: Vec<f32>,
    /// The parameters after every step.
    pub(crate) after: Vec<f64>,
}

#[derive(Deserialize, Debug, Clone, Copy)]
#[serde(tag = "kind")]
enum Settings {
    #[serde(rename = "SGD")]
    Sgd {
        momentum: f32,
        nesterov: bool,
        weight_decay: f32,
    },
    Adam(Moments),
    AdamW(Moments),
    #[serde(rename = "RMSprop")]
    RmsProp {
        alpha: f32,
        eps: f32,
        momentum: f32,
        weight_decay: f32,
    },
}

#[derive(Deserialize, Debug, Clone, Copy)]
struct Moments {
    betas: [f32; 2],
    eps: f32,
    weight_decay: f32,
}

impl OptimizerCase {
    pub(crate) fn name(&self) -> String {
        format!("{:?}", self.settings)
    }

    pub(crate) fn optimizer(&self) -> Optimizer {
        let adam = |moments: Moments, decoupled| Optimizer::Adam {
            betas: moments.betas,
            epsilon: moments.eps,
            weight_decay: moments.weight_decay,
            decoupled,
        };
        match self.settings {
            Settings::Sgd {
                momentum,
                nesterov,
                weight_decay,
            } => Optimizer::Sgd {
                momentum,
                nesterov,
                weight_decay,
            },
            Settings::Adam(moments) => adam(moments, false),
            Settings::AdamW(moments) => adam(moments, true),
            Settings::RmsProp {
                alpha,
                eps,
                momentum,
                weight_decay,
            } => Optimizer::RmsProp {
                alpha,
                epsilon: eps,
                momentum,
                weight_decay,
            },
        }
    }
}

/// The learning rates of the first steps.
#[derive(Deserialize)]
pub(crate) struct ScheduleCase {
    base: f32,
    warmup: u64,
    #[serde(flatten)]
    decay: Fall,
    pub(crate) rates: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(tag = "kind")]
enum Fall {
    Constant,
    Step {
        every: u64,
        gamma: f32,
    },
    Cosine {
        steps: u64,
        min: f32,
    },
    OneCycle {
        steps: u64,
        pct_start: f32,
        div_factor: f32,
        final_div_factor: f32,
    },
}

impl ScheduleCase {
    pub(crate) fn schedule(&self) -> Schedule {
        Schedule {
            base: self.base,
            warmup: self.warmup,
            decay: match self.decay {
                Fall::Constant => Decay::Constant,
                Fall::Step { every, gamma } => Decay::Step { every, gamma },
                Fall::Cosine { steps, min } => Decay::Cosine { steps, min },
                Fall::OneCycle {
                    steps,
                    pct_start,
                    div_factor,
                    final_div_factor,
                } => Decay::OneCycle {
                    steps,
                    pct_start,
                    div_factor,
                    final_div_factor,
                },
            },
        }
    }
}

/// Every number of ours within `tolerance` of theirs. Small ones are measured by the largest number
/// beside them: a tensor of small gradients has to be as right as one of large ones.
pub(crate) fn assert_agree(what: &str, ours: &[f32], theirs: &[f64], tolerance: f64) {
    assert_eq!(ours.len(), theirs.len(), "{what}: as many numbers");
    let largest = theirs
        .iter()
        .fold(0.0, |largest: f64, x| largest.max(x.abs()));
    // Below a hundredth there may be nothing but the rounding of a zero.
    let floor = largest.clamp(0.01, 1.0);
    for (i, (&ours, &theirs)) in ours.iter().zip(theirs).enumerate() {
        let error = (f64::from(ours) - theirs).abs();
        let allowed = tolerance * theirs.abs().max(floor);
        assert!(error <= allowed, "{what} [{i}]: {ours} against {theirs}");
    }
}
