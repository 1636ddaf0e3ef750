//! Marks of the parameters after a step, which are kept on the device until they are told.

use super::planner::Planner;
use super::step::BatchMemory;
use crate::arguments::{Pointer, arguments};
use crate::kernels::{Kernel, MARKS};
use crate::launch::Launch;
use crate::memory::{DeviceSlice, Plain};
use crate::setup::WorkerBatch;
use lockstep_nn::{Layout, MarkedPlaces};

arguments! {
    struct Look {
        values: Pointer<f32>,
        tensors: Pointer<u64>,
        count: u32,
        room: u32,
        marks: Pointer<u32>,
        looked: Pointer<Looked>,
        loss: Pointer<f64>,
    }

    /// How far looks are.
    pub(crate) struct Looked {
        /// Steps of the run.
        steps: u64,
        /// Looks so far.
        made: u64,
    }
}

// SAFETY: numbers of 64 bits.
unsafe impl Plain for Looked {}

const LOOK: Kernel<Look> = Kernel::new(&MARKS, "look", 128);

/// Marks in a device's memory: a ring.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MarkMemory {
    tensors: DeviceSlice<u64>,
    /// Looks that there is room for.
    pub(crate) room: usize,
    /// Of each look a mark of the loss and one of every tensor.
    pub(crate) marks: DeviceSlice<u32>,
    /// One.
    pub(crate) looked: DeviceSlice<Looked>,
}

impl MarkMemory {
    /// Room for so many looks at a network.
    pub(crate) fn new(planner: &mut Planner, layout: &Layout, room: usize) -> Self {
        let tensors = MarkedPlaces::new(layout);
        let places = tensors.looked_at();
        let places = places.flat_map(|range| [range.start as u64, range.len() as u64]);
        Self {
            room,
            marks: planner.keep(room * Self::width(layout)),
            tensors: planner.constant(places.collect()),
            looked: planner.keep(1),
        }
    }

    /// Marks of a look.
    pub(crate) fn width(layout: &Layout) -> usize {
        1 + layout.tensors.len()
    }

    /// What looks at these values after a step of such a batch.
    pub(crate) fn look(
        &self,
        values: DeviceSlice<f32>,
        batch: &BatchMemory,
        of_step: &WorkerBatch,
    ) -> Launch {
        let has_first = of_step.lanes.iter().any(|lane| lane.lane == 0);
        let arguments = Look {
            values: values.pointer(),
            tensors: self.tensors.pointer(),
            count: (self.tensors.len() / 2) as u32,
            room: self.room as u32,
            marks: self.marks.pointer(),
            looked: self.looked.pointer(),
            loss: match has_first {
                true => batch.last_loss(0),
                false => Pointer::null(),
            },
        };
        Launch::new(&LOOK, [1, 1, 1], arguments)
    }
}
