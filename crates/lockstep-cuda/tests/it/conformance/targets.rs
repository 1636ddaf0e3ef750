//! What networks are to say, and how rows count: every loss, of targets in every shape.

use super::cases::{Case, linear};
use lockstep_base::random::Stream;
use lockstep_cuda::{BatchSlot, InputPlace, SampleTargets, TargetShape};
use lockstep_nn::{
    Dims, LayerSpec, Loss, LossTargets, NamedLayer, ShapedClasses, Targets, WeightedNumbers,
};

/// What is minimised, and what there is of every sample.
#[derive(Debug, Clone, Default)]
pub(crate) struct CaseTargets {
    pub(crate) loss: Loss,
    pub(crate) classes: Vec<u32>,
    /// As many numbers a sample as there are outputs, where the loss is of numbers or labels.
    pub(crate) numbers: Vec<f32>,
    /// How much each counts, if they have weights of their own.
    pub(crate) weights: Vec<f32>,
    /// What each is mixed with, and the share of that, if they are mixed.
    pub(crate) others: Vec<(u32, f32)>,
    /// How rows count.
    pub(crate) shape: Option<TargetShape>,
}

impl CaseTargets {
    /// What a device is told of all samples of a network with so many outputs.
    pub(crate) fn of_samples(&self, outputs: usize) -> SampleTargets<'_> {
        match self.loss.targets() {
            LossTargets::Classes => SampleTargets::Classes(&self.classes),
            _ => SampleTargets::Numbers(outputs, &self.numbers),
        }
    }

    /// What all rows of a step count beside their weights.
    pub(crate) fn factor(&self, step: usize) -> f64 {
        1.0 / (0.7 + step as f64)
    }

    /// The factors of an epoch of so many steps that the host does not tell with each batch.
    pub(crate) fn factors(&self, steps: usize) -> Vec<f64> {
        let steps = if self.shape.is_some() { steps } else { 0 };
        (0..steps).map(|step| self.factor(step)).collect()
    }

    /// Fills the targets of a batch that the host prepares.
    pub(crate) fn fill(&self, slot: &mut BatchSlot<'_>, step: usize) {
        let rows = self.rows(slot.samples, step);
        slot.classes.copy_from_slice(&rows.classes);
        slot.numbers.copy_from_slice(&rows.numbers);
        slot.weights.copy_from_slice(&rows.weights);
        for (i, &(class, share)) in rows.others.iter().enumerate() {
            (slot.other_classes[i], slot.other_shares[i]) = (class, share);
        }
        if let Some(factor) = &mut slot.factor {
            **factor = rows.factor;
        }
    }

    /// The targets of some samples in a step of the epoch.
    pub(crate) fn rows(&self, samples: &[u32], step: usize) -> RowTargets {
        fn some<T: Copy>(all: &[T], width: usize, samples: &[u32]) -> Vec<T> {
            let rows = samples.iter().map(|&sample| sample as usize * width);
            rows.flat_map(|first| all.get(first..first + width).unwrap_or_default())
                .copied()
                .collect()
        }
        let (classes, width) = match self.loss.targets() {
            LossTargets::Classes => (&self.classes[..], 0),
            _ => (&[][..], self.numbers.len() / self.classes.len()),
        };
        RowTargets {
            classes: some(classes, 1, samples),
            numbers: some(&self.numbers, width, samples),
            weights: some(&self.weights, 1, samples),
            others: some(&self.others, 1, samples),
            factor: self.factor(step),
        }
    }
}

/// The targets of some rows.
pub(crate) struct RowTargets {
    classes: Vec<u32>,
    numbers: Vec<f32>,
    weights: Vec<f32>,
    others: Vec<(u32, f32)>,
    factor: f64,
}

impl RowTargets {
    /// The same for a model on the processor.
    pub(crate) fn targets<'a>(&'a self, of: &'a CaseTargets) -> Targets<'a> {
        match (of.loss.targets(), &of.shape) {
            (LossTargets::Classes, None) => Targets::Classes(&self.classes),
            (LossTargets::Classes, Some(shape)) => Targets::Shaped(ShapedClasses {
                classes: &self.classes,
                others: &self.others,
                weights: &shape.class_weights,
                samples: &self.weights,
                smoothing: shape.smoothing,
                factor: self.factor,
            }),
            (_, None) => Targets::Numbers(&self.numbers),
            (_, Some(_)) => Targets::Weighted(WeightedNumbers {
                numbers: &self.numbers,
                weights: &self.weights,
                factor: self.factor,
            }),
        }
    }
}

/// Every loss.
pub(crate) fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    let focal = [0.0, 0.5, 2.0].map(|gamma| Loss::Focal { gamma });
    for loss in [Loss::CrossEntropy].into_iter().chain(focal) {
        for shape in shapes() {
            all.extend(classes(loss, shape));
        }
    }
    for loss in [
        Loss::SquaredError,
        Loss::AbsoluteError,
        Loss::Huber { delta: 0.4 },
        Loss::Quantile { share: 0.8 },
        Loss::BinaryCrossEntropy,
    ] {
        // More outputs than a warp has threads, and one.
        for outputs in [1, 3, 35] {
            all.extend(numbers(loss, outputs));
        }
    }
    all
}

/// Ways in which classes count.
fn shapes() -> Vec<Option<TargetShape>> {
    let shape = |class_weights: &[f32], is_weighted, is_mixed, smoothing| {
        Some(TargetShape {
            class_weights: class_weights.to_vec(),
            is_weighted,
            is_mixed,
            smoothing,
        })
    };
    vec![
        None,
        shape(&[], false, false, 0.1),
        shape(&[0.5, 2.0], true, false, 0.0),
        shape(&[0.5, 0.0, 3.0, 1.0], true, true, 0.2),
        shape(&[], false, true, 0.0),
    ]
}

/// A network whose scores are of all sizes, and of some rows all 0.
fn network(name: String, outputs: usize) -> Case {
    let layers = NamedLayer::stack([linear(6), LayerSpec::Relu, linear(outputs)]);
    let case = Case::new(name, layers, Dims::vector(4), 17).in_batches(7, 2);
    let mut case = case.without_biases();
    let scales = [1.0, 30.0, 0.0, 1e4, -3.0, 1e-3];
    for (row, scale) in case.inputs.chunks_mut(4).zip(scales.iter().cycle()) {
        row.iter_mut().for_each(|x| *x *= scale);
    }
    case
}

fn classes(loss: Loss, shape: Option<TargetShape>) -> Vec<Case> {
    let name = format!("{loss:?} of {shape:?}");
    let is = |which: fn(&TargetShape) -> bool| shape.as_ref().is_some_and(which);
    let (is_weighted, is_mixed) = (is(|shape| shape.is_weighted), is(|shape| shape.is_mixed));
    let case = network(name, 5);
    let mut draw = Stream::new(case.seed, 7);
    let count = case.targets.classes.len();
    let weights = (0..count).map(|i| [0.0, 1.0, 2.5, 0.3][i % 4]);
    let others: Vec<_> = (0..count)
        .map(|_| (draw.below(5), draw.unit_f32()))
        .collect();
    let targets = CaseTargets {
        loss,
        weights: if is_weighted {
            weights.collect()
        } else {
            Vec::new()
        },
        others: if is_mixed { others } else { Vec::new() },
        shape,
        ..case.targets.clone()
    };
    let on_host = Case {
        place: InputPlace::Host,
        targets,
        ..case
    };
    match is_mixed {
        true => vec![on_host],
        false => {
            let case = network(format!("{} resident", on_host.name), 5);
            let targets = on_host.targets.clone();
            vec![on_host, Case { targets, ..case }]
        }
    }
}

fn numbers(loss: Loss, outputs: usize) -> Vec<Case> {
    let mut all = Vec::new();
    for (place, shape) in [
        (InputPlace::Resident, None),
        (InputPlace::Host, None),
        (InputPlace::Resident, Some(())),
        (InputPlace::Host, Some(())),
    ] {
        let name = format!("{loss:?} of {outputs}, {place:?}, {shape:?}");
        let case = network(name, outputs);
        let mut draw = Stream::new(case.seed, 7);
        let count = case.targets.classes.len();
        let number = |_| match loss {
            Loss::BinaryCrossEntropy => draw.below(2) as f32,
            _ => 4.0 * draw.unit_f32() - 2.0,
        };
        let mut numbers: Vec<f32> = (0..count * outputs).map(number).collect();
        if loss != Loss::BinaryCrossEntropy {
            // Rows of zeros are told exactly by a network without a bias.
            numbers[..outputs].fill(0.0);
        }
        let weights = (0..count).map(|i| [0.0, 1.0, 2.5][i % 3]);
        let targets = CaseTargets {
            loss,
            numbers,
            weights: if shape.is_some() {
                weights.collect()
            } else {
                Vec::new()
            },
            shape: shape.map(|()| TargetShape {
                is_weighted: true,
                ..TargetShape::default()
            }),
            ..case.targets.clone()
        };
        all.push(Case {
            place,
            targets,
            ..case
        });
    }
    all
}
