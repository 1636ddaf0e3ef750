//! A pass over some rows that is being planned: where its numbers lie, and the launches so far.

use super::learn::{DenseGradient, DenseJob};
use super::pointwise::{Pointwise, PointwiseStep};
use super::step::{BeginStep, LaneTables, Progress};
use crate::arguments::Pointer;
use crate::launch::Launch;
use crate::memory::DeviceSlice;
use lockstep_nn::{Factored, Layout};
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
    /// The rows of a data set by its samples, if the first layer is to gather the batch's, and with that begin the step.
    pub(crate) by_sample: Option<(DeviceSlice<f32>, BeginStep)>,
    /// Gradients of dense layers that are formed at the end of the pass.
    pub(crate) put_off: Vec<DenseJob>,
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
            by_sample: None,
            put_off: Vec::new(),
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

    /// How the step begins, if that is the duty of the layer with this input, which then has a row for each sample.
    pub(crate) fn begin_of(&self, x: DeviceSlice<f32>) -> Option<BeginStep> {
        let set = self
            .by_sample
            .filter(|(inputs, _)| inputs.address() == x.address());
        set.map(|(_, begin)| begin)
    }

    /// Puts off the gradient of a dense layer's weights to the end of the pass, if they learn. What it is formed of must stay.
    pub(crate) fn learn(&mut self, layer: &Factored, gradient: DenseGradient) {
        if self.is_trained(&layer.weight()) {
            let by_sample = self.begin_of(gradient.x).is_some();
            self.put_off.push(DenseJob::new(layer, gradient, by_sample));
        }
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
