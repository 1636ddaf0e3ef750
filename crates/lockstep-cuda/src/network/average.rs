//! A running average of the weights.

use super::pass::Pass;
use super::planner::Planner;
use super::step::Progress;
use super::update::UpdateMemory;
use crate::arguments::{Pointer, arguments};
use crate::kernels::{AVERAGE, Kernel};
use crate::launch::Launch;
use crate::memory::DeviceSlice;
use lockstep_nn::Layout;

arguments! {
    struct Average {
        averaged: Pointer<f32>,
        present: Pointer<f32>,
        begin: u64,
        end: u64,
        first: Pointer<u64>,
        progress: Pointer<Progress>,
        share: f32,
        unused: u32,
    }
}

const AVERAGE_WEIGHTS: Kernel<Average> = Kernel::new(&AVERAGE, "average", 256);

/// When weights are taken as they are, where there is an average already.
pub(crate) const NEVER: u64 = u64::MAX;

/// An average in a device's memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AverageMemory {
    /// How much of the distance to the present weights it goes in a step.
    share: f32,
    /// As many numbers as the state vector has. What never learns is in it from the beginning.
    pub(crate) values: DeviceSlice<f32>,
    /// How many steps of the run are done when weights are taken as they are.
    pub(crate) first: DeviceSlice<u64>,
}

impl AverageMemory {
    /// Of a state vector of so many numbers. Each step keeps the share `kept` of it.
    pub(crate) fn new(planner: &mut Planner, numbers: usize, kept: f64) -> Self {
        Self {
            share: (1.0 - kept) as f32,
            values: planner.keep(numbers),
            first: planner.keep(1),
        }
    }

    /// Appends what takes in the weights after a step, when it is counted on.
    pub(crate) fn launch(&self, pass: &mut Pass<'_>, layout: &Layout, update: &UpdateMemory) {
        for range in layout.trained() {
            let arguments = Average {
                averaged: self.values.pointer(),
                present: update.values.pointer(),
                begin: range.start as u64,
                end: range.end as u64,
                first: self.first.pointer(),
                progress: update.progress.pointer(),
                share: self.share,
                unused: 0,
            };
            let launch = Launch::over(&AVERAGE_WEIGHTS, range.len().div_ceil(4), arguments);
            pass.push(launch);
        }
    }
}
