//! How a step begins and ends: the rows of the batch are brought to where the network reads them, and what the lanes came
//! to is added up.

use super::pass::Pass;
use super::planner::Planner;
use super::targets::TargetMemory;
use super::update::StepRate;
use crate::arguments::{Pointer, arguments};
use crate::epoch::LaneReport;
use crate::images::{MixedImage, SeenImage};
use crate::kernels::{BATCH, Kernel};
use crate::launch::Launch;
use crate::memory::{DeviceSlice, Plain};
use crate::ring::SlotLists;
use crate::rows::RowLists;
use crate::setup::{InputPlace, Setup, WorkerBatch};
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
        last: f64,
        diverged_step: u64,
        diverged_loss: f64,
    }

    /// What the first kernel of a step notes for all others.
    pub(crate) struct BeginStep {
        next_samples: Pointer<u32>,
        samples: Pointer<u32>,
        rates: Pointer<StepRate>,
        rate: Pointer<StepRate>,
        progress: Pointer<Progress>,
    }

    struct Gather {
        inputs: Pointer<f32>,
        x: Pointer<f32>,
        width: u32,
        begin: BeginStep,
    }

    /// A part of a batch that the host has prepared.
    struct TakenPart {
        to: Pointer<u32>,
        from: Pointer<u32>,
        words: u64,
    }

    struct Take {
        parts: [TakenPart; 9],
        factor: Pointer<f64>,
        factors: Pointer<f64>,
        stride: u64,
        slots: u32,
        begin: BeginStep,
    }

    /// Which samples this worker's rows are in the next step.
    pub(crate) struct NextSamples {
        order: Pointer<u32>,
        samples: Pointer<u32>,
        steps: u32,
        batch: u32,
        first: [u32; 2],
        rows: [u32; 2],
    }

    pub(crate) struct EndStep {
        losses: Pointer<f64>,
        correct: Pointer<u32>,
        lane_rows: Pointer<u32>,
        lane_numbers: Pointer<u32>,
        sums: Pointer<LaneSum>,
        progress: Pointer<Progress>,
        lanes: u32,
        next: NextSamples,
    }
}

impl BeginStep {
    /// Of kernels that do not begin a step.
    pub(crate) fn none() -> Self {
        Self {
            next_samples: Pointer::null(),
            samples: Pointer::null(),
            rates: Pointer::null(),
            rate: Pointer::null(),
            progress: Pointer::null(),
        }
    }
}

impl RowSum {
    fn of(sum: LossSum) -> Self {
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
    /// Of a lane that has come to nothing yet.
    pub(crate) fn nothing() -> Self {
        let nothing = RowSum::of(LossSum::default());
        Self {
            epoch: nothing,
            window: nothing,
            last: 0.0,
            diverged_step: NEVER,
            diverged_loss: 0.0,
        }
    }

    /// Begins an epoch, or the rest of one in which the lane has come to so much.
    pub(crate) fn begin_epoch(&mut self, sum: LossSum) {
        self.epoch = RowSum::of(sum);
    }

    /// Begins the next window.
    pub(crate) fn begin_window(&mut self) {
        self.window = RowSum::of(LossSum::default());
    }

    /// What is told of it.
    pub(crate) fn report(&self) -> LaneReport {
        let diverged = (self.diverged_step, self.diverged_loss);
        LaneReport {
            epoch: self.epoch.sum(),
            window: self.window.sum(),
            last: self.last,
            diverged: (self.diverged_step != NEVER).then_some(diverged),
        }
    }
}

// SAFETY: whole numbers of 64 bits.
unsafe impl Plain for Progress {}
// SAFETY: numbers of 64 bits.
unsafe impl Plain for LaneSum {}

const GATHER: Kernel<Gather> = Kernel::new(&BATCH, "gather", 256);
const TAKE: Kernel<Take> = Kernel::new(&BATCH, "take", 256);
const END_STEP: Kernel<EndStep> = Kernel::new(&BATCH, "end_step", 256);

/// The step in which a lane diverged that has not.
const NEVER: u64 = u64::MAX;

/// What is known of the rows of a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchMemory {
    /// The samples of an epoch, in its order; empty if the host prepares the batches.
    pub(crate) order: DeviceSlice<u32>,
    /// How far training is.
    pub(crate) progress: DeviceSlice<Progress>,
    /// The inputs, and if the host prepares them, the targets.
    pub(crate) rows: RowLists,
    /// How each row shows its image, if they are images of a data set that lies here.
    pub(crate) seen: DeviceSlice<SeenImage>,
    /// With what each is mixed, if they are.
    pub(crate) mixed: DeviceSlice<MixedImage>,
    /// Which sample each row is, and which one each is in the next step; empty if the host prepares the batches.
    pub(crate) samples: DeviceSlice<u32>,
    pub(crate) next_samples: DeviceSlice<u32>,
    /// How the steps of an epoch update; empty in a gang. And how the present one does.
    pub(crate) rates: DeviceSlice<StepRate>,
    pub(crate) rate: DeviceSlice<StepRate>,
    pub(crate) targets: TargetMemory,
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
    /// Room for as many rows as the planner has.
    pub(crate) fn new(planner: &mut Planner, setup: &Setup) -> Self {
        let rows = planner.rows;
        let outputs = setup.model.outputs();
        let progress = planner.keep(1);
        let order = match setup.inputs {
            InputPlace::Resident => setup.samples,
            InputPlace::Images | InputPlace::Host => 0,
        };
        let slot = setup.slot_shape();
        Self {
            order: planner.keep(order),
            progress,
            rows: RowLists::new(&mut planner.kept, setup.row_shape(), rows),
            seen: planner.keep(if slot.sees_images { rows } else { 0 }),
            mixed: planner.keep(if slot.mixes_images { rows } else { 0 }),
            samples: planner.keep(rows),
            next_samples: planner.keep(if order > 0 { rows } else { 0 }),
            rates: planner.keep(match setup.exchange.updates() {
                true => setup.steps(),
                false => 0,
            }),
            rate: planner.keep(1),
            targets: TargetMemory::new(planner, setup.shape.as_ref(), setup.steps(), progress),
            scores: planner.keep(rows * outputs),
            delta: planner.keep(rows * outputs),
            losses: planner.keep(rows),
            correct: planner.keep(rows),
            sums: planner.keep(setup.lanes),
        }
    }

    /// What a lane came to in the newest step that it had rows in.
    pub(crate) fn last_loss(&self, lane: usize) -> Pointer<f64> {
        let sum = self.sums.part(lane..lane + 1).pointer();
        sum.field(std::mem::offset_of!(LaneSum, last))
    }

    /// What the first kernel of a step notes.
    pub(crate) fn begin_step(&self) -> BeginStep {
        BeginStep {
            next_samples: self.next_samples.pointer_if_any(),
            samples: self.samples.pointer(),
            rates: self.rates.pointer_if_any(),
            rate: self.rate.pointer(),
            progress: self.progress.pointer(),
        }
    }

    /// Appends what gathers the inputs of a batch from a data set.
    pub(crate) fn gather(
        &self,
        pass: &mut Pass<'_>,
        inputs: DeviceSlice<f32>,
        width: usize,
        begin: BeginStep,
    ) {
        let arguments = Gather {
            inputs: inputs.pointer(),
            x: self.rows.inputs.pointer(),
            width: width as u32,
            begin,
        };
        pass.push(Launch::new(&GATHER, [pass.rows, 1, 1], arguments));
    }

    /// Appends what takes a batch that the host has prepared out of a ring of so many slots, of which this is the first and
    /// the next is so many words later.
    pub(crate) fn take(
        &self,
        pass: &mut Pass<'_>,
        slot: &SlotLists,
        (slots, stride): (usize, usize),
        begin: BeginStep,
    ) {
        let [own, theirs] = [&self.rows, &slot.rows];
        let part = |to: DeviceSlice<u32>, from: DeviceSlice<u32>| TakenPart {
            to: to.pointer(),
            from: from.pointer(),
            words: from.len() as u64,
        };
        let parts = [
            part(own.inputs.words(), theirs.inputs.words()),
            part(own.classes, theirs.classes),
            part(own.numbers.words(), theirs.numbers.words()),
            part(own.weights.words(), theirs.weights.words()),
            part(own.other_classes, theirs.other_classes),
            part(own.other_shares.words(), theirs.other_shares.words()),
            part(self.seen.words(), slot.seen.words()),
            part(self.mixed.words(), slot.mixed.words()),
            part(self.samples, slot.samples),
        ];
        let words = parts.iter().map(|part| part.words as usize).sum();
        let arguments = Take {
            parts,
            factor: slot.factor.pointer_if_any(),
            factors: self.targets.factors.pointer(),
            stride: stride as u64,
            slots: slots as u32,
            begin,
        };
        pass.push(Launch::over(&TAKE, words, arguments));
    }

    /// What ends a step.
    pub(crate) fn end_step(&self, lanes: &LaneTables, batches: &[WorkerBatch; 2]) -> EndStep {
        EndStep {
            losses: self.losses.pointer(),
            correct: self.correct.pointer(),
            lane_rows: lanes.rows.pointer(),
            lane_numbers: lanes.numbers.pointer(),
            sums: self.sums.pointer(),
            progress: self.progress.pointer(),
            lanes: lanes.count() as u32,
            next: NextSamples {
                order: self.order.pointer_if_any(),
                samples: self.next_samples.pointer(),
                steps: self.order.len().div_ceil(batches[0].samples.max(1)) as u32,
                batch: batches[0].samples as u32,
                first: batches.each_ref().map(|batch| batch.first as u32),
                rows: batches.each_ref().map(|batch| batch.rows() as u32),
            },
        }
    }

    /// Appends what ends a step, where no other kernel does.
    pub(crate) fn push_end_step(&self, pass: &mut Pass<'_>, batches: &[WorkerBatch; 2]) {
        let arguments = self.end_step(pass.lanes, batches);
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
    /// Rows of the one that has most.
    pub(crate) longest: usize,
}

impl LaneTables {
    /// Room for so many lanes, of which the longest has so many rows.
    pub(crate) fn new(planner: &mut Planner, lanes: usize, longest: usize) -> Self {
        Self {
            rows: planner.keep(lanes + 1),
            numbers: planner.keep(lanes),
            longest,
        }
    }

    /// Lanes that have rows.
    pub(crate) fn count(&self) -> usize {
        self.numbers.len()
    }
}
