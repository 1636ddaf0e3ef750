//! From the lanes' gradients to new parameters and running statistics.

use super::pass::Pass;
use super::step::Progress;
use crate::arguments::{Pointer, arguments};
use crate::kernels::{Kernel, UPDATE};
use crate::launch::Launch;
use crate::memory::{DeviceSlice, Plain};
use lockstep_nn::{Layout, Optimizer, STATISTICS_SHARE};
use std::ops::Range;

arguments! {
    /// Which sums are formed of the lanes' gradients.
    struct LaneSums {
        gradients: Pointer<f32>,
        stride: u64,
        adds: Pointer<u32>,
        count: u32,
        result: u32,
    }

    /// What a step's update depends on.
    pub(crate) struct StepRate {
        corrections: [f64; 2],
        rate: f32,
        unused: u32,
    }

    struct Update {
        lanes: LaneSums,
        values: Pointer<f32>,
        first: Pointer<f32>,
        second: Pointer<f32>,
        rates: Pointer<StepRate>,
        progress: Pointer<Progress>,
        begin: u64,
        end: u64,
        part: f32,
        settings: [f32; 4],
    }

    struct Blend {
        lanes: LaneSums,
        values: Pointer<f32>,
        begin: u64,
        end: u64,
        share: f32,
    }
}

// SAFETY: numbers, without gaps between them.
unsafe impl Plain for StepRate {}

impl StepRate {
    /// What the device needs of an update.
    pub(crate) fn of(update: &lockstep_nn::Update) -> Self {
        Self {
            corrections: update.corrections,
            rate: update.rate,
            unused: 0,
        }
    }
}

const BLEND: Kernel<Blend> = Kernel::new(&UPDATE, "blend", 256);

/// An optimizer's kernel, and its settings as that has them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OptimizerKernel {
    name: &'static str,
    settings: [f32; 4],
}

impl OptimizerKernel {
    pub(crate) fn new(optimizer: Optimizer) -> Self {
        let (name, settings) = match optimizer {
            Optimizer::Sgd {
                momentum,
                nesterov,
                weight_decay,
            } => {
                let name = match (momentum == 0.0, nesterov) {
                    (true, _) => "update_plain_sgd",
                    (false, false) => "update_heavy_ball",
                    (false, true) => "update_look_ahead",
                };
                (name, [momentum, weight_decay, 0.0, 0.0])
            }
            Optimizer::Adam {
                betas: [beta1, beta2],
                epsilon,
                weight_decay,
                decoupled,
            } => {
                let name = match decoupled {
                    true => "update_adam_w",
                    false => "update_adam",
                };
                (name, [beta1, beta2, epsilon, weight_decay])
            }
            Optimizer::RmsProp {
                alpha,
                epsilon,
                momentum,
                weight_decay,
            } => {
                let name = match momentum == 0.0 {
                    true => "update_rms_prop",
                    false => "update_heavy_rms_prop",
                };
                (name, [alpha, epsilon, momentum, weight_decay])
            }
            Optimizer::Lion {
                betas: [beta1, beta2],
                weight_decay,
            } => ("update_lion", [beta1, beta2, weight_decay, 0.0]),
        };
        Self { name, settings }
    }

    fn kernel(self) -> Kernel<Update> {
        Kernel::new(&UPDATE, self.name, 256)
    }
}

/// Where an update finds its numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UpdateMemory {
    /// The state vector.
    pub(crate) values: DeviceSlice<f32>,
    /// The optimizer's vectors; without numbers where it has none.
    pub(crate) planes: [DeviceSlice<f32>; 2],
    /// A gradient for each lane.
    pub(crate) gradients: DeviceSlice<f32>,
    /// Numbers from one to the next.
    pub(crate) stride: usize,
    /// The updates of an epoch's steps.
    pub(crate) rates: DeviceSlice<StepRate>,
    pub(crate) progress: DeviceSlice<Progress>,
}

/// What is updated alike: chunks that follow each other, are all parameters or all running statistics, and learn with the
/// same part of the rate.
struct AlikeChunks {
    range: Range<usize>,
    part: f32,
    are_statistics: bool,
}

/// All chunks that learn, those that are alike together.
fn alike(layout: &Layout) -> Vec<AlikeChunks> {
    let mut all: Vec<AlikeChunks> = Vec::new();
    for (range, &part) in layout.chunks.iter().zip(&layout.rates) {
        let are_statistics = range.start >= layout.parameters;
        match all.last_mut() {
            _ if part == 0.0 => {}
            Some(last)
                if last.range.end == range.start
                    && (last.part, last.are_statistics) == (part, are_statistics) =>
            {
                last.range.end = range.end;
            }
            _ => all.push(AlikeChunks {
                range: range.clone(),
                part,
                are_statistics,
            }),
        }
    }
    all
}

impl UpdateMemory {
    /// Appends what forms the sums of the lanes' gradients, as `adds` has them in pairs, and updates all that learns by the
    /// one that lane `result` has then.
    pub(crate) fn launch(
        &self,
        pass: &mut Pass<'_>,
        layout: &Layout,
        optimizer: OptimizerKernel,
        (adds, result): (DeviceSlice<u32>, usize),
    ) {
        let lanes = LaneSums {
            gradients: self.gradients.pointer(),
            stride: self.stride as u64,
            adds: adds.pointer(),
            count: (adds.len() / 2) as u32,
            result: result as u32,
        };
        for chunks in alike(layout) {
            let (begin, end) = (chunks.range.start as u64, chunks.range.end as u64);
            let numbers = chunks.range.len();
            let values = self.values.pointer();
            pass.push(match chunks.are_statistics {
                true => Launch::over(
                    &BLEND,
                    numbers,
                    Blend {
                        lanes,
                        values,
                        begin,
                        end,
                        share: STATISTICS_SHARE,
                    },
                ),
                false => Launch::over(
                    &optimizer.kernel(),
                    numbers,
                    Update {
                        lanes,
                        values,
                        first: self.planes[0].pointer(),
                        second: self.planes[1].pointer(),
                        rates: self.rates.pointer(),
                        progress: self.progress.pointer(),
                        begin,
                        end,
                        part: chunks.part,
                        settings: optimizer.settings,
                    },
                ),
            });
        }
    }
}
