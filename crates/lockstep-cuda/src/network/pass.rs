//! A pass over some rows that is being planned: where its numbers lie, and the launches so far.

use super::pointwise::{Pointwise, PointwiseStep};
use super::step::{LaneTables, Progress};
use crate::arguments::Pointer;
use crate::launch::Launch;
use crate::memory::DeviceSlice;
use lockstep_nn::Layout;
use std::ops::Range;

/// What a pass is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PassKind {
    /// A training step.
    Train,
    /// Evaluation: no dropout, running statistics instead of the batch's.
    Evaluate,
}

/// Where the numbers lie that all passes have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PassMemory {
    /// The state vector.
    pub(crate) values: DeviceSlice<f32>,
    /// A gradient for each lane, one after the other.
    pub(crate) gradients: DeviceSlice<f32>,
    /// Numbers from the gradient of one lane to that of the next.
    pub(crate) stride: usize,
    /// Which sample each row of the batch is.
    pub(crate) samples: DeviceSlice<u32>,
    /// How far training is.
    pub(crate) progress: DeviceSlice<Progress>,
    /// The key of all draws of dropouts.
    pub(crate) dropout_key: u64,
}

/// A pass over some rows. Layers append what computes them.
pub(crate) struct Pass<'a> {
    pub(crate) kind: PassKind,
    pub(crate) rows: usize,
    /// Which rows belong to which lane.
    pub(crate) lanes: &'a LaneTables,
    memory: PassMemory,
    layout: &'a Layout,
    launches: Vec<Launch>,
}

impl<'a> Pass<'a> {
    /// A pass over the rows of some lanes.
    pub(crate) fn new(
        kind: PassKind,
        rows: usize,
        lanes: &'a LaneTables,
        memory: PassMemory,
        layout: &'a Layout,
    ) -> Self {
        Self {
            kind,
            rows,
            lanes,
            memory,
            layout,
            launches: Vec::new(),
        }
    }

    /// Appends a launch.
    pub(crate) fn push(&mut self, launch: Launch) {
        self.launches.push(launch);
    }

    /// All launches, in their order.
    pub(crate) fn into_launches(self) -> Vec<Launch> {
        self.launches
    }

    /// A tensor's numbers.
    pub(crate) fn values(&self, tensor: &Range<usize>) -> Pointer<f32> {
        self.memory.values.part(tensor.clone()).pointer()
    }

    /// Its gradient by the first lane; those by the next lanes are [`Pass::stride`] numbers apart.
    pub(crate) fn gradient(&self, tensor: &Range<usize>) -> Pointer<f32> {
        self.memory.gradients.part(tensor.clone()).pointer()
    }

    /// Numbers from the gradient of one lane to that of the next.
    pub(crate) fn stride(&self) -> u64 {
        self.memory.stride as u64
    }

    /// Whether a tensor learns at all. Of what is frozen there is no gradient.
    pub(crate) fn is_trained(&self, tensor: &Range<usize>) -> bool {
        let chunks = &self.layout.chunks;
        let chunk = chunks.partition_point(|chunk| chunk.end <= tensor.start);
        !self.layout.is_frozen(chunk)
    }

    /// What is done in this pass to an activation of so many numbers a row.
    pub(crate) fn pointwise(&self, steps: &[PointwiseStep], features: usize) -> Pointwise {
        let is_done = |step: &&PointwiseStep| self.kind == PassKind::Train || !step.is_dropout();
        let memory = &self.memory;
        Pointwise::new(
            steps.iter().filter(is_done),
            features,
            (memory.samples, memory.progress, memory.dropout_key),
        )
    }
}
