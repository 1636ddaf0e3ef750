//! Where a GPU's batches come from: a training set that lies in its memory, or batches that the host prepares ahead.
//!
//! A set that looks the same in every epoch, and fits, is brought to the GPU once, as the network sees it. Then a step
//! needs nothing of the host. Images that are varied, or mixed with others, are brought as they are stored: the host says of
//! each row how its images are seen, some steps ahead of the GPU, which makes the numbers. What does not fit is gathered here.

use crate::TrainError;
use crate::batches::Batches;
use crate::device::EpochPlan;
use crate::lanes::LaneProgram;
use crate::loss_shape::LossShape;
use crate::mixing::Mixture;
use crate::prepare::threads_here;
use crate::sets::{Sets, all_indices};
use crate::targets::TargetRows;
use lockstep_cuda::{
    DataSet, Epoch, Gpu, ImageMap, ImageValues, Images, InputPlace, MixedImage, SLOTS,
    SampleTargets, Samples, SeenImage, TargetShape, Training,
};
use lockstep_data::{self as data, StoredValues};
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
        let set = match stored_images(settings, sets) {
            Some(images) => Some(DataSet::of_images(gpu, &images)?),
            None if lies_on_gpu(settings, sets.train.len() * sets.input_len()) => {
                Some(resident(gpu, sets)?)
            }
            None => None,
        };
        let batches = Batches::new(sets, settings, false);
        let (batches, threads) = match set {
            // The processor has nothing else to do than to prepare batches.
            None => {
                let threads = threads_here(settings, &sets.facts())?;
                (batches.on(threads.clone()), threads)
            }
            Some(_) => (batches.without_inputs(), Threads::default()),
        };
        Ok(Self {
            batches,
            threads,
            set,
            shape: shape.map(|shape| shape.of_targets(mixes)),
            next: 0,
        })
    }

    /// Where batches come from.
    pub(super) fn place(&self) -> InputPlace {
        self.set.as_ref().map_or(InputPlace::Host, DataSet::place)
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
        let is_resident = self.place() == InputPlace::Resident;
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
        if self.place() == InputPlace::Resident {
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
            let seen = |sample| {
                let augmenter = sets.augmenter.as_ref();
                augmenter.map_or_else(SeenImage::default, |augmenter| {
                    seen_as(augmenter.seen(rows.step, sample))
                })
            };
            for (to, &sample) in slot.seen.iter_mut().zip(rows.samples) {
                *to = seen(sample);
            }
            for (to, mixture) in slot.mixed.iter_mut().zip(rows.mixtures) {
                *to = mixed_with(mixture, seen(mixture.other));
            }
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

/// Whether a training set of so many numbers lies on the GPU as the network sees it: it looks the same in every epoch, and
/// fits.
fn lies_on_gpu(settings: &TrainingSettings, numbers: usize) -> bool {
    settings.augment.is_none() && (4 * numbers) as u64 <= settings.gpu_data
}

/// Whether images lie there as they are stored, in so many bytes: they are varied or mixed, and fit.
fn lie_on_gpu(settings: &TrainingSettings, bytes: usize) -> bool {
    settings.augment.is_some() && bytes as u64 <= settings.gpu_data
}

/// Where batches of a training set of so many numbers come from, and the bytes that it takes on the GPU. Images that are varied
/// are taken to be bytes, as pictures are.
pub(super) fn forecast(settings: &TrainingSettings, numbers: usize) -> (InputPlace, usize) {
    if lies_on_gpu(settings, numbers) {
        (InputPlace::Resident, 4 * numbers)
    } else if lie_on_gpu(settings, numbers) {
        (InputPlace::Images, numbers)
    } else {
        (InputPlace::Host, 0)
    }
}

/// The training set's images, if they are to lie on the GPU as they are stored.
fn stored_images<'a>(settings: &TrainingSettings, sets: &'a Sets) -> Option<Images<'a>> {
    let augment = settings.augment?;
    let stored = sets.train.stored_images(&sets.normaliser)?;
    let values = match stored.values {
        StoredValues::Bytes(values) => ImageValues::Bytes(values),
        StoredValues::Numbers(values) => ImageValues::Numbers(values),
    };
    lie_on_gpu(settings, values.bytes()).then(|| Images {
        values,
        shape: sets.train.shape(),
        scales: stored.scales,
        most: stored.most,
        has_contrast: augment.changes.contrast > 0.0,
    })
}

/// What the GPU is told of how an image is seen.
fn seen_as(image: data::SeenImage) -> SeenImage {
    match image {
        data::SeenImage::Part { begin, flip } => SeenImage::part(begin, flip),
        data::SeenImage::Map(map) => SeenImage::mapped(&ImageMap {
            middle: map.middle,
            right: map.right,
            down: map.down,
            brightness: map.brightness,
            contrast: map.contrast,
            saturation: map.saturation,
            erased: map.erased,
        }),
    }
}

/// What the GPU is told of another image, which is seen so, and with which a row is mixed.
fn mixed_with(mixture: &Mixture, seen: SeenImage) -> MixedImage {
    match &mixture.part {
        Some(part) => MixedImage::over(mixture.other, seen, part.clone()),
        None => MixedImage::blended(mixture.other, seen, mixture.share),
    }
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
