//! Where a GPU's batches come from: a training set that lies in its memory, or batches that the host prepares ahead.
//!
//! A set that looks the same in every epoch, and fits, is brought to the GPU once, as the network sees it. Then a step
//! needs nothing of the host. Images that are varied are gathered here, some steps ahead of the GPU.

use crate::TrainError;
use crate::batches::Batches;
use crate::device::EpochPlan;
use crate::lanes::LaneProgram;
use crate::loss_shape::LossShape;
use crate::prepare::threads_here;
use crate::sets::{Sets, all_indices};
use crate::targets::TargetRows;
use lockstep_cuda::{
    DataSet, Epoch, Gpu, InputPlace, SLOTS, SampleTargets, Samples, TargetShape, Training,
};
use lockstep_nn::threads::{pieces, pieces_mut};
use lockstep_nn::{LossSum, Targets, Threads};
use lockstep_resolve::TrainingSettings;
use std::ops::Range;

/// Numbers of inputs that a thread copies at a time.
const COPIED: usize = 1 << 18;

/// Feeds a training.
pub(super) struct Feed {
    batches: Batches,
    /// What batches are prepared on.
    threads: Threads,
    /// The training set, if it lies on the GPU.
    set: Option<DataSet>,
    shape: Option<TargetShape>,
    /// The step of the epoch whose batch the host prepares next.
    next: u64,
}

impl Feed {
    /// Decides where batches come from, and brings the set to the GPU if it is to lie there.
    pub(super) fn new(
        gpu: &Gpu,
        settings: &TrainingSettings,
        sets: &Sets,
    ) -> Result<Self, TrainError> {
        let shape = LossShape::new(settings, sets);
        let mixes = settings.augment.is_some_and(|augment| augment.mixes());
        let is_resident = lies_on_gpu(settings, 4 * sets.train.len() * sets.input_len());
        // The processor has nothing else to do than to prepare batches, unless those lie on the GPU.
        let threads = match is_resident {
            true => Threads::default(),
            false => threads_here(settings, &sets.facts())?,
        };
        Ok(Self {
            batches: Batches::new(sets, settings, false).on(threads.clone()),
            threads,
            set: is_resident.then(|| resident(gpu, sets)).transpose()?,
            shape: shape.map(|shape| shape.of_targets(mixes)),
            next: 0,
        })
    }

    /// Where batches come from.
    pub(super) fn place(&self) -> InputPlace {
        match self.set {
            Some(_) => InputPlace::Resident,
            None => InputPlace::Host,
        }
    }

    /// How rows count; none where all count as they are.
    pub(super) fn shape(&self) -> Option<TargetShape> {
        self.shape.clone()
    }

    /// The training set on the GPU.
    pub(super) fn set(&self) -> Option<DataSet> {
        self.set.clone()
    }

    /// Begins an epoch, of which `done` steps are done. Each of this worker's lanes has come to so much in these.
    pub(super) fn begin_epoch(
        &mut self,
        training: &mut Training,
        sets: &Sets,
        plan: &EpochPlan,
        sums: &[LossSum],
    ) -> Result<(), TrainError> {
        self.batches.begin(plan.epoch);
        self.next = plan.done;
        let is_resident = self.set.is_some();
        let factors = match is_resident {
            true => self.batches.factors(sets),
            false => Vec::new(),
        };
        let order = match is_resident {
            true => self.batches.order(),
            false => &[],
        };
        Ok(training.begin_epoch(Epoch {
            step: plan.first_step + plan.done,
            in_epoch: plan.done as usize,
            order,
            updates: &plan.updates,
            factors: &factors,
            sums,
        })?)
    }

    /// Sends batches to the GPU until that of `step` of the epoch is among them, and as many of those after it as there is
    /// room for.
    pub(super) fn send(
        &mut self,
        training: &mut Training,
        sets: &Sets,
        programs: &[LaneProgram; 2],
        (step, steps): (u64, u64),
    ) -> Result<(), TrainError> {
        if self.set.is_some() {
            return Ok(());
        }
        let until = steps.min(step + SLOTS as u64);
        while self.next < until {
            let program = &programs[usize::from(self.next + 1 == steps)];
            self.batches.prepare(sets, program, self.next);
            let rows = self.batches.prepared();
            let mut slot = training.slot()?;
            let tiles = (
                pieces(rows.inputs, COPIED),
                pieces_mut(&mut *slot.inputs, COPIED),
            );
            (self.threads).each(tiles, |_, (from, to)| to.copy_from_slice(from));
            slot.samples.copy_from_slice(rows.samples);
            match rows.targets {
                Targets::Classes(classes) => slot.classes.copy_from_slice(classes),
                Targets::Numbers(numbers) => slot.numbers.copy_from_slice(numbers),
                Targets::Shaped(_) | Targets::Weighted(_) => {
                    unreachable!("targets without a shape")
                }
            }
            slot.weights.copy_from_slice(rows.weights);
            for (i, &(class, share)) in rows.others.iter().enumerate() {
                slot.other_classes[i] = class;
                slot.other_shares[i] = share;
            }
            if let Some(factor) = slot.factor.as_deref_mut() {
                *factor = rows.factor;
            }
            slot.send()?;
            self.next += 1;
        }
        Ok(())
    }
}

/// Whether a training set of so many bytes lies on the GPU: it looks the same in every epoch, and fits.
pub(super) fn lies_on_gpu(settings: &TrainingSettings, bytes: usize) -> bool {
    settings.augment.is_none() && bytes as u64 <= settings.gpu_data
}

/// Brings the training set to the GPU, as the network sees it.
fn resident(gpu: &Gpu, sets: &Sets) -> Result<DataSet, TrainError> {
    let (set, samples) = (&sets.train, all_indices(&sets.train));
    let mut targets = TargetRows::new(set.target_kind(), set.outputs(), samples.len());
    targets.gather(set, &sets.scale, &samples, 0);
    let inputs = |rows: Range<usize>, to: &mut [f32]| {
        set.gather(&samples[rows], &sets.normaliser, to);
    };
    let content = Samples {
        width: sets.input_len(),
        inputs: &inputs,
        targets: match targets.rows(0..samples.len()) {
            Targets::Numbers(numbers) => SampleTargets::Numbers(set.outputs(), numbers),
            Targets::Classes(classes) => SampleTargets::Classes(classes),
            Targets::Shaped(_) | Targets::Weighted(_) => unreachable!("targets without a shape"),
        },
        weights: set.weights().unwrap_or_default(),
    };
    Ok(DataSet::new(gpu, content)?)
}
