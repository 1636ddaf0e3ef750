//! Batches that the host prepares: a ring of slots in memory that the device copies from by itself, and the same ring in its
//! own. A stream of their own copies them while steps are computed.

use crate::driver::Device;
use crate::error::CudaError;
use crate::images::{MixedImage, SeenImage};
use crate::memory::{Arena, DeviceMemory, DeviceSlice};
use crate::pinned::{Pinned, PinnedParts};
use crate::rows::{RowLists, RowShape};
use crate::streams::{Event, Stream};
use std::sync::Arc;

/// Batches that may be ready or on their way while another is computed.
pub const SLOTS: usize = 3;

/// What a batch has of each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotShape {
    pub(crate) row: RowShape,
    /// Whether it has, in the place of inputs, how each row shows an image.
    pub(crate) sees_images: bool,
    /// Whether it says then with what each is mixed.
    pub(crate) mixes_images: bool,
    /// Whether the batch has a factor for all rows.
    pub(crate) has_factor: bool,
}

/// A slot of a ring, in a device's memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlotLists {
    pub(crate) rows: RowLists,
    pub(crate) seen: DeviceSlice<SeenImage>,
    pub(crate) mixed: DeviceSlice<MixedImage>,
    pub(crate) samples: DeviceSlice<u32>,
    pub(crate) factor: DeviceSlice<f64>,
}

impl SlotLists {
    /// A slot of so many rows that begins at an address, and its words.
    pub(crate) fn new(at: u64, shape: SlotShape, rows: usize) -> (Self, usize) {
        let mut arena = Arena::new(at);
        let lists = Self {
            rows: RowLists::new(&mut arena, shape.row, rows),
            seen: arena.take(if shape.sees_images { rows } else { 0 }),
            mixed: arena.take(if shape.mixes_images { rows } else { 0 }),
            samples: arena.take(rows),
            factor: arena.take(usize::from(shape.has_factor)),
        };
        (lists, arena.bytes() / size_of::<u32>())
    }
}

/// Room for a batch, to be filled and then sent.
pub struct BatchSlot<'a> {
    /// A row of inputs for each row of this worker's, in the order of its lanes; empty if they are images of a data set that
    /// lies in the GPU's memory.
    pub inputs: &'a mut [f32],
    /// How each row shows its image then.
    pub seen: &'a mut [SeenImage],
    /// With what each is mixed; empty unless they are, there.
    pub mixed: &'a mut [MixedImage],
    /// Which sample each row is.
    pub samples: &'a mut [u32],
    /// The class of each row; empty if it is to be told numbers.
    pub classes: &'a mut [u32],
    /// The numbers of each row.
    pub numbers: &'a mut [f32],
    /// How much each row counts; empty unless rows have weights.
    pub weights: &'a mut [f32],
    /// Of what every row is mixed with, the class; empty unless rows are mixed.
    pub other_classes: &'a mut [u32],
    /// Its share.
    pub other_shares: &'a mut [f32],
    /// What all rows count beside that; none where they count as they are.
    pub factor: Option<&'a mut f64>,
    sending: Sending<'a>,
}

/// How a filled slot is sent.
struct Sending<'a> {
    memory: &'a DeviceMemory,
    stream: &'a Stream,
    arrived: &'a Event,
    from: *const u32,
    to: DeviceSlice<u32>,
    next: &'a mut u64,
}

impl BatchSlot<'_> {
    /// Queues the copy to the device, and returns before it is done. The step that is queued as many steps later as batches
    /// are sent already waits for it.
    ///
    /// # Errors
    /// When something that was queued before has failed.
    pub fn send(self) -> Result<(), CudaError> {
        let Sending {
            memory,
            stream,
            arrived,
            from,
            to,
            next,
        } = self.sending;
        // SAFETY: the words are pinned, and nobody writes to them before the step that reads the slot is done: the next
        // time that it is handed out, that is waited for.
        unsafe { memory.queue_write(stream, to, from)? };
        arrived.record(stream)?;
        *next += 1;
        Ok(())
    }
}

/// The ring.
pub(crate) struct Ring {
    // Dropped first: it waits for the copies.
    stream: Stream,
    slots: Pinned<u32>,
    /// The device's slots.
    device: DeviceSlice<u32>,
    shape: SlotShape,
    /// When the batch of a slot has come, and when the step that read it is done.
    arrived: [Event; SLOTS],
    used: [Event; SLOTS],
    /// The run's number of the step whose batch is sent next.
    next: u64,
}

impl Ring {
    /// As many slots as the device has in this memory.
    pub(crate) fn new(
        gpu: &Arc<dyn Device>,
        device: DeviceSlice<u32>,
        shape: SlotShape,
    ) -> Result<Self, CudaError> {
        let event = |_| Event::new(gpu);
        let events =
            || -> Result<[Event; SLOTS], CudaError> { Ok([event(0)?, event(1)?, event(2)?]) };
        Ok(Self {
            stream: Stream::new(gpu)?,
            slots: Pinned::zeros(gpu, device.len())?,
            device,
            shape,
            arrived: events()?,
            used: events()?,
            next: 0,
        })
    }

    /// Goes on with this step. What was sent for others is forgotten.
    pub(crate) fn begin(&mut self, step: u64) -> Result<(), CudaError> {
        self.next = step;
        self.stream.wait()
    }

    /// Batches that were sent and whose steps were not queued, of which this would be the next.
    pub(crate) fn ahead(&self, step: u64) -> u64 {
        self.next - step
    }

    /// Room for the next batch, of so many rows. Waits until the step that used it before is done.
    pub(crate) fn slot<'a>(
        &'a mut self,
        memory: &'a DeviceMemory,
        rows: usize,
    ) -> Result<BatchSlot<'a>, CudaError> {
        let Self {
            stream,
            slots,
            device,
            shape,
            arrived,
            used,
            next,
        } = self;
        let number = (*next % SLOTS as u64) as usize;
        used[number].wait()?;
        let stride = device.len() / SLOTS;
        let (lists, words) = SlotLists::new(0, *shape, rows);
        let range = number * stride..number * stride + words;
        let to = device.part(range.clone());
        let slot = &mut slots[range];
        let from = slot.as_ptr();
        let mut parts = PinnedParts::new(slot);
        Ok(BatchSlot {
            inputs: parts.next(lists.rows.inputs),
            classes: parts.next(lists.rows.classes),
            numbers: parts.next(lists.rows.numbers),
            weights: parts.next(lists.rows.weights),
            other_classes: parts.next(lists.rows.other_classes),
            other_shares: parts.next(lists.rows.other_shares),
            seen: parts.next(lists.seen),
            mixed: parts.next(lists.mixed),
            samples: parts.next(lists.samples),
            factor: parts.next(lists.factor).first_mut(),
            sending: Sending {
                memory,
                stream,
                arrived: &arrived[number],
                from,
                to,
                next,
            },
        })
    }

    /// Lets a stream wait for the batch of a step.
    pub(crate) fn arrive(&self, step: u64, stream: &Stream) -> Result<(), CudaError> {
        stream.wait_for(&self.arrived[(step % SLOTS as u64) as usize])
    }

    /// Marks that a step is done with its batch when the stream has come here.
    pub(crate) fn leave(&self, step: u64, stream: &Stream) -> Result<(), CudaError> {
        self.used[(step % SLOTS as u64) as usize].record(stream)
    }
}
