//! How a step begins and ends: the rows of the batch are gathered from a data set that is in the device's memory, and what
//! the lanes came to is added up.

use super::pass::Pass;
use super::planner::Planner;
use crate::arguments::{Pointer, arguments};
use crate::epoch::LaneReport;
use crate::kernels::{BATCH, Kernel};
use crate::launch::Launch;
use crate::memory::{DeviceSlice, Plain};
use lockstep_nn::LossSum;

arguments! {
    /// How far training is.
    pub(crate) struct Progress {
        step: u64,
        in_epoch: u64,
    }

    /// What some rows came to.
    pub(crate) struct RowSum {
        loss: f64,
        correct: u64,
        rows: u64,
    }

    /// What a lane has come to.
    pub(crate) struct LaneSum {
        epoch: RowSum,
        window: RowSum,
        diverged_step: u64,
        diverged_loss: f64,
    }

    struct Gather {
        inputs: Pointer<f32>,
        classes: Pointer<u32>,
        order: Pointer<u32>,
        progress: Pointer<Progress>,
        x: Pointer<f32>,
        row_classes: Pointer<u32>,
        row_samples: Pointer<u32>,
        batch: u32,
        first: u32,
        width: u32,
    }

    struct EndStep {
        losses: Pointer<f64>,
        correct: Pointer<u32>,
        lane_rows: Pointer<u32>,
        lane_numbers: Pointer<u32>,
        sums: Pointer<LaneSum>,
        progress: Pointer<Progress>,
        lanes: u32,
    }
}

impl RowSum {
    pub(crate) fn of(sum: LossSum) -> Self {
        Self {
            loss: sum.loss,
            correct: sum.correct,
            rows: sum.rows,
        }
    }

    fn sum(&self) -> LossSum {
        LossSum {
            loss: self.loss,
            correct: self.correct,
            rows: self.rows,
        }
    }
}

impl LaneSum {
    /// Of a lane that has come to so much in the epoch.
    pub(crate) fn beginning(epoch: LossSum) -> Self {
        Self {
            epoch: RowSum::of(epoch),
            window: RowSum::of(LossSum::default()),
            diverged_step: NEVER,
            diverged_loss: 0.0,
        }
    }

    /// What is told of it.
    pub(crate) fn report(&self) -> LaneReport {
        let diverged = (self.diverged_step, self.diverged_loss);
        LaneReport {
            epoch: self.epoch.sum(),
            window: self.window.sum(),
            diverged: (self.diverged_step != NEVER).then_some(diverged),
        }
    }
}

// SAFETY: whole numbers of 64 bits.
unsafe impl Plain for Progress {}
// SAFETY: numbers of 64 bits.
unsafe impl Plain for LaneSum {}

const GATHER: Kernel<Gather> = Kernel::new(&BATCH, "gather", 256);
const END_STEP: Kernel<EndStep> = Kernel::new(&BATCH, "end_step", 128);

/// The step in which a lane diverged that has not.
const NEVER: u64 = u64::MAX;

/// A data set in the device's memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResidentMemory {
    /// A row for each sample.
    pub(crate) inputs: DeviceSlice<f32>,
    /// A class for each sample.
    pub(crate) classes: DeviceSlice<u32>,
}

/// What is known of the rows of a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchMemory {
    /// The samples of an epoch, in its order.
    pub(crate) order: DeviceSlice<u32>,
    /// How far training is.
    pub(crate) progress: DeviceSlice<Progress>,
    /// The inputs.
    pub(crate) x: DeviceSlice<f32>,
    /// Which sample each row is, and its class.
    pub(crate) samples: DeviceSlice<u32>,
    pub(crate) classes: DeviceSlice<u32>,
    /// The network's scores, and the gradient of the loss by them.
    pub(crate) scores: DeviceSlice<f32>,
    pub(crate) delta: DeviceSlice<f32>,
    /// The loss of each row, and whether the network was right.
    pub(crate) losses: DeviceSlice<f64>,
    pub(crate) correct: DeviceSlice<u32>,
    /// What each of the worker's lanes has come to.
    pub(crate) sums: DeviceSlice<LaneSum>,
}

impl BatchMemory {
    /// Room for as many rows as the planner has, of so many inputs and outputs; for so many lanes, and for epochs of so
    /// many samples.
    pub(crate) fn new(
        planner: &mut Planner,
        [inputs, outputs]: [usize; 2],
        lanes: usize,
        samples: usize,
    ) -> Self {
        let rows = planner.rows;
        Self {
            order: planner.keep(samples),
            progress: planner.keep(1),
            x: planner.keep(rows * inputs),
            samples: planner.keep(rows),
            classes: planner.keep(rows),
            scores: planner.keep(rows * outputs),
            delta: planner.keep(rows * outputs),
            losses: planner.keep(rows),
            correct: planner.keep(rows),
            sums: planner.keep(lanes),
        }
    }

    /// Appends what gathers the rows of a batch of so many samples over all workers, of which this worker's begin at
    /// `first`.
    pub(crate) fn gather(
        &self,
        pass: &mut Pass<'_>,
        set: ResidentMemory,
        batch: usize,
        first: usize,
    ) {
        let arguments = Gather {
            inputs: set.inputs.pointer(),
            classes: set.classes.pointer(),
            order: self.order.pointer(),
            progress: self.progress.pointer(),
            x: self.x.pointer(),
            row_classes: self.classes.pointer(),
            row_samples: self.samples.pointer(),
            batch: batch as u32,
            first: first as u32,
            width: (set.inputs.len() / set.classes.len().max(1)) as u32,
        };
        pass.push(Launch::new(&GATHER, [pass.rows, 1, 1], arguments));
    }

    /// Appends what ends a step.
    pub(crate) fn end_step(&self, pass: &mut Pass<'_>) {
        let arguments = EndStep {
            losses: self.losses.pointer(),
            correct: self.correct.pointer(),
            lane_rows: pass.lanes.rows.pointer(),
            lane_numbers: pass.lanes.numbers.pointer(),
            sums: self.sums.pointer(),
            progress: self.progress.pointer(),
            lanes: pass.lanes.count() as u32,
        };
        pass.push(Launch::new(&END_STEP, [1, 1, 1], arguments));
    }
}

/// Which rows belong to which lane, for the device to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaneTables {
    /// The first row of every lane that has rows, and where the last lane ends.
    pub(crate) rows: DeviceSlice<u32>,
    /// Which of the worker's lanes each of them is.
    pub(crate) numbers: DeviceSlice<u32>,
}

impl LaneTables {
    /// Room for so many lanes.
    pub(crate) fn new(planner: &mut Planner, lanes: usize) -> Self {
        Self {
            rows: planner.keep(lanes + 1),
            numbers: planner.keep(lanes),
        }
    }

    /// Lanes that have rows.
    pub(crate) fn count(&self) -> usize {
        self.numbers.len()
    }
}
