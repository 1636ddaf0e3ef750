//! The processor as a device: the state vector is a slice that layers read where it lies.

use crate::buffer::Buffer;
use crate::device::{DeviceState, Network, StatePart};
use crate::layers::Step;
use crate::layers::batch_norm::MOMENTUM;
use crate::layout::Layout;
use crate::loss::{Loss, LossSum};
use crate::model::{Batch, Model};
use crate::optimizer::{Update, blend};
use crate::replica::Replica;
use std::ops::Range;

impl Network for Model {
    type Values = [f32];
    type State = HostState;

    fn layout(&self) -> &Layout {
        self.layout()
    }

    fn outputs(&self) -> usize {
        self.outputs()
    }

    fn loss(&self) -> Loss {
        self.loss()
    }

    fn load_state(&self, values: &[f32], planes: usize) -> HostState {
        HostState::new(self.layout(), values, planes)
    }

    fn gradient(&mut self, replica: &mut dyn Replica, batch: Batch<'_>, step: Step<'_>) -> LossSum {
        self.gradient(replica, batch, step)
    }

    fn scores(&mut self, values: &[f32], inputs: &[f32]) -> &[f32] {
        self.scores(values, inputs)
    }
}

/// A state vector and the optimizer's vectors in this process's memory.
pub struct HostState {
    values: Buffer,
    /// Empty if the optimizer has none.
    planes: [Buffer; 2],
    /// Parameters come first, running statistics after so many numbers.
    parameters: usize,
    /// Room for the gradient of the longest chunk, where it is used at once.
    block: Buffer,
}

impl HostState {
    fn new(layout: &Layout, values: &[f32], planes: usize) -> Self {
        let longest = layout.chunks.iter().map(|chunk| chunk.len()).max();
        let plane = |number| Buffer::zeros(if number < planes { values.len() } else { 0 });
        Self {
            values: values.into(),
            planes: [plane(0), plane(1)],
            parameters: layout.parameters,
            block: Buffer::zeros(longest.unwrap_or(0)),
        }
    }
}

impl DeviceState for HostState {
    type Values = [f32];

    fn values(&self) -> &[f32] {
        &self.values
    }

    fn update(&mut self, range: Range<usize>, gradient: &[f32], update: &Update) {
        let values = &mut self.values[range.clone()];
        if range.start >= self.parameters {
            return blend(values, gradient, MOMENTUM);
        }
        let planes = self.planes.each_mut();
        let planes = planes.map(|plane| plane.get_mut(range.clone()).unwrap_or_default());
        update.apply(values, gradient, planes);
    }

    fn update_at_once(
        &mut self,
        range: Range<usize>,
        fill: &mut dyn FnMut(&mut [f32]),
        update: &Update,
    ) {
        let mut block = std::mem::take(&mut self.block);
        let gradient = &mut block[..range.len()];
        fill(gradient);
        self.update(range, gradient, update);
        self.block = block;
    }

    fn read(&mut self, range: Range<usize>) -> &[f32] {
        &self.values[range]
    }

    fn read_all(&mut self) -> [&[f32]; 3] {
        let [first, second] = &self.planes;
        [&self.values, first, second]
    }

    fn write(&mut self, part: StatePart, range: Range<usize>, change: &mut dyn FnMut(&mut [f32])) {
        let vector = match part {
            StatePart::Values => &mut self.values,
            StatePart::Plane(number) => &mut self.planes[number],
        };
        change(&mut vector[range]);
    }
}
