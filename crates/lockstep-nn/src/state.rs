//! The state vector of a network that is trained: its values, with the optimizer's vectors beside them.

use crate::buffer::Buffer;
use crate::layers::batch_norm::MOMENTUM;
use crate::layout::Layout;
use crate::optimizer::{Update, blend};
use crate::threads::{Threads, Tiles, ranges_mut};
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
}

impl StateVector {
    /// A state with these values, and so many vectors of an optimizer, all zeros.
    pub fn new(layout: &Layout, values: &[f32], planes: usize) -> Self {
        let plane = |number| Buffer::zeros(if number < planes { values.len() } else { 0 });
        Self {
            values: values.into(),
            planes: [plane(0), plane(1)],
            parameters: layout.parameters,
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

    /// Calls `work` with every chunk of some that follow each other, on these threads: with its place among them, its tile
    /// of `with`, room to work in of `room.1` numbers ([`Threads::rooms`]), and what updates the chunk by its summed
    /// gradient.
    pub fn each_chunk<C: Tiles>(
        &mut self,
        threads: &Threads,
        (room, length): (&mut [f32], usize),
        chunks: &[Range<usize>],
        with: C,
        work: impl Fn(usize, C::Tile, &mut [f32], UpdateChunk<'_>) + Sync,
    ) {
        let parameters = self.parameters;
        let [first, second] = self
            .planes
            .each_mut()
            .map(|plane| ranges_mut(plane, chunks));
        let tiles = (ranges_mut(&mut self.values, chunks), first, second, with);
        threads.each_in(
            room,
            length,
            tiles,
            |room, number, (values, first, second, with)| {
                let is_parameter = chunks[number].start < parameters;
                work(
                    number,
                    with,
                    room,
                    &mut |gradient, update| match is_parameter {
                        true => update.apply(values, gradient, [first, second]),
                        false => blend(values, gradient, MOMENTUM),
                    },
                );
            },
        );
    }
}

/// Updates a chunk by its summed gradient.
pub type UpdateChunk<'a> = &'a mut dyn FnMut(&[f32], &Update);
