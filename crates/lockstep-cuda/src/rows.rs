//! Rows of inputs and what a network is to say of them: how they are shaped, and where they lie in a memory.

use crate::memory::{Arena, DeviceSlice};
use lockstep_nn::{Loss, LossTargets};

/// What there is of a row, or of a sample of a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowShape {
    /// Numbers of its inputs.
    pub inputs: usize,
    /// Numbers or labels that a network is to say of it; 0 where it is one class.
    pub numbers: usize,
    /// Whether it has a weight of its own.
    pub is_weighted: bool,
    /// Whether it is a mixture of two samples.
    pub is_mixed: bool,
}

/// How rows count in the loss, where they do not count as they are.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TargetShape {
    /// How much each class counts; those beyond count 1.
    pub class_weights: Vec<f32>,
    /// Whether rows have weights of their own.
    pub is_weighted: bool,
    /// Whether rows are mixtures of two samples. Only batches that the host prepares may be.
    pub is_mixed: bool,
    /// The part of a target that is spread evenly over all classes.
    pub smoothing: f32,
}

impl RowShape {
    /// The rows of a network with so many inputs and outputs.
    pub fn of([inputs, outputs]: [usize; 2], loss: Loss, targets: Option<&TargetShape>) -> Self {
        Self {
            inputs,
            numbers: match loss.targets() {
                LossTargets::Classes => 0,
                LossTargets::Numbers | LossTargets::Labels => outputs,
            },
            is_weighted: targets.is_some_and(|targets| targets.is_weighted),
            is_mixed: targets.is_some_and(|targets| targets.is_mixed),
        }
    }
}

/// Some rows or samples, each of the lists as long as there are such, or empty.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowLists {
    /// Their inputs.
    pub(crate) inputs: DeviceSlice<f32>,
    /// The class of each, or
    pub(crate) classes: DeviceSlice<u32>,
    /// as many numbers as the network has outputs.
    pub(crate) numbers: DeviceSlice<f32>,
    /// How much each counts.
    pub(crate) weights: DeviceSlice<f32>,
    /// Of mixtures of two samples, the class of the other one, and its share.
    pub(crate) other_classes: DeviceSlice<u32>,
    pub(crate) other_shares: DeviceSlice<f32>,
}

impl RowLists {
    /// So many rows.
    pub(crate) fn new(arena: &mut Arena, shape: RowShape, rows: usize) -> Self {
        let some = |is: bool| if is { rows } else { 0 };
        Self {
            inputs: arena.take(rows * shape.inputs),
            classes: arena.take(some(shape.numbers == 0)),
            numbers: arena.take(rows * shape.numbers),
            weights: arena.take(some(shape.is_weighted)),
            other_classes: arena.take(some(shape.is_mixed)),
            other_shares: arena.take(some(shape.is_mixed)),
        }
    }
}
