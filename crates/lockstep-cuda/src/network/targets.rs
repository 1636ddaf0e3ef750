//! What the network is to say of the rows of a batch, in a device's memory.
//!
//! Kernels of losses are given [`TargetRows`]. Of a data set that is resident they look a row's target up by the number of
//! its sample; batches that the host prepares have a target for every row. What is not there is a null pointer.

use super::planner::Planner;
use super::step::Progress;
use crate::arguments::{Pointer, arguments};
use crate::memory::DeviceSlice;
use crate::rows::{RowLists, TargetShape};

arguments! {
    /// What kernels of losses are given.
    pub(crate) struct TargetRows {
        places: Pointer<u32>,
        classes: Pointer<u32>,
        numbers: Pointer<f32>,
        weights: Pointer<f32>,
        other_classes: Pointer<u32>,
        other_shares: Pointer<f32>,
        class_weights: Pointer<f32>,
        weighted_classes: u32,
        smoothing: f32,
        factors: Pointer<f64>,
        progress: Pointer<Progress>,
    }
}

/// How rows count, in a device's memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TargetMemory {
    /// How much each class counts.
    pub(crate) class_weights: DeviceSlice<f32>,
    /// What all rows of a step count, by the steps of an epoch; empty where rows count as they are.
    pub(crate) factors: DeviceSlice<f64>,
    smoothing: f32,
    progress: DeviceSlice<Progress>,
}

impl TargetMemory {
    /// For epochs of so many steps.
    pub(crate) fn new(
        planner: &mut Planner,
        targets: Option<&TargetShape>,
        steps: usize,
        progress: DeviceSlice<Progress>,
    ) -> Self {
        Self {
            class_weights: planner.keep(targets.map_or(0, |targets| targets.class_weights.len())),
            factors: planner.keep(if targets.is_some() { steps } else { 0 }),
            smoothing: targets.map_or(0.0, |targets| targets.smoothing),
            progress,
        }
    }

    /// What kernels are given: the targets of a batch's rows, row by row, or those of all samples of a data set and which
    /// sample each row is.
    pub(crate) fn arguments(
        &self,
        lists: RowLists,
        places: Option<DeviceSlice<u32>>,
    ) -> TargetRows {
        TargetRows {
            places: places.map_or(Pointer::null(), |places| places.pointer()),
            classes: lists.classes.pointer_if_any(),
            numbers: lists.numbers.pointer_if_any(),
            weights: lists.weights.pointer_if_any(),
            other_classes: lists.other_classes.pointer_if_any(),
            other_shares: lists.other_shares.pointer_if_any(),
            class_weights: self.class_weights.pointer_if_any(),
            weighted_classes: self.class_weights.len() as u32,
            smoothing: self.smoothing,
            factors: self.factors.pointer_if_any(),
            progress: self.progress.pointer(),
        }
    }
}
