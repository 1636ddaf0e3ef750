//! The state vector of a network that is trained: its values, with the optimizer's vectors beside them.

use crate::buffer::Buffer;
use crate::layers::batch_norm::MOMENTUM;
use crate::layout::Layout;
use crate::optimizer::{Update, blend};
use std::ops::Range;

/// One of the vectors of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatePart {
    /// Parameters, then running statistics.
    Values,
    /// A vector of the optimizer, by its number.
    Plane(usize),
}

/// Parameters and running statistics, and the optimizer's vectors, in this process's memory.
///
/// Ranges are whole chunks, or blocks of one, all of them parameters or all running statistics.
pub struct StateVector {
    values: Buffer,
    /// Empty if the optimizer has none.
    planes: [Buffer; 2],
    /// Parameters come first, running statistics after so many numbers.
    parameters: usize,
    /// Room for the gradient of the longest chunk, where it is used at once.
    block: Buffer,
}

impl StateVector {
    /// A state with these values, and so many vectors of an optimizer, all zeros.
    pub fn new(layout: &Layout, values: &[f32], planes: usize) -> Self {
        let longest = layout.chunks.iter().map(|chunk| chunk.len()).max();
        let plane = |number| Buffer::zeros(if number < planes { values.len() } else { 0 });
        Self {
            values: values.into(),
            planes: [plane(0), plane(1)],
            parameters: layout.parameters,
            block: Buffer::zeros(longest.unwrap_or(0)),
        }
    }

    /// The parameters and running statistics.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// All vectors, whole: the values, and the optimizer's two, empty where it has none.
    pub fn vectors(&self) -> [&[f32]; 3] {
        let [first, second] = &self.planes;
        [&self.values, first, second]
    }

    /// One vector, to be changed.
    pub fn part_mut(&mut self, part: StatePart) -> &mut [f32] {
        match part {
            StatePart::Values => &mut self.values,
            StatePart::Plane(number) => &mut self.planes[number],
        }
    }

    /// Updates a range by its summed gradient: parameters by the optimizer, running statistics by blending.
    pub fn update(&mut self, range: Range<usize>, gradient: &[f32], update: &Update) {
        let values = &mut self.values[range.clone()];
        if range.start >= self.parameters {
            return blend(values, gradient, MOMENTUM);
        }
        let planes = self.planes.each_mut();
        let planes = planes.map(|plane| plane.get_mut(range.clone()).unwrap_or_default());
        update.apply(values, gradient, planes);
    }

    /// Updates a range by a gradient with nothing to add to it, which `fill` writes.
    pub fn update_at_once(
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
}
