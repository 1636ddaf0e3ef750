//! What a worker of a gang exchanges with its device: partial sums of gradients that come, and new values that go, through
//! memory that the device copies by itself.

use crate::driver::Device;
use crate::error::CudaError;
use crate::memory::{DeviceMemory, DeviceSlice};
use crate::pinned::Pinned;
use crate::streams::{Event, Stream};
use std::ops::Range;
use std::sync::Arc;

/// The exchange of a worker with its device.
pub(crate) struct GangMemory {
    /// The partial sums of the newest step, each as long as the state vector.
    partials: Vec<Pinned<f32>>,
    /// New values on their way.
    values: Pinned<f32>,
    /// When the partial sums are there, and when the values have gone.
    come: Event,
    gone: Event,
    /// What learns; nothing else is exchanged.
    trained: Vec<Range<usize>>,
}

impl GangMemory {
    /// For at most so many partial sums.
    pub(crate) fn new(
        device: &Arc<dyn Device>,
        partials: usize,
        numbers: usize,
        trained: Vec<Range<usize>>,
    ) -> Result<Self, CudaError> {
        let vector = |_| Pinned::zeros(device, numbers);
        Ok(Self {
            partials: (0..partials).map(vector).collect::<Result<_, _>>()?,
            values: vector(0)?,
            come: Event::new(device)?,
            gone: Event::new(device)?,
            trained,
        })
    }

    /// Queues copies of these partial sums. Those before must not be needed any more.
    pub(crate) fn queue_partials(
        &mut self,
        memory: &DeviceMemory,
        stream: &Stream,
        sums: impl Iterator<Item = DeviceSlice<f32>>,
    ) -> Result<(), CudaError> {
        for (to, from) in self.partials.iter_mut().zip(sums) {
            for range in &self.trained {
                let (from, to) = (from.part(range.clone()), to[range.clone()].as_mut_ptr());
                // SAFETY: as many numbers; they are pinned, and only `partial` shows them, after it has waited.
                unsafe { memory.queue_read(stream, from, to)? };
            }
        }
        self.come.record(stream)
    }

    /// A partial sum, once it is there.
    pub(crate) fn partial(&self, number: usize) -> Result<&[f32], CudaError> {
        self.come.wait()?;
        Ok(&self.partials[number])
    }

    /// Room for new values, once those before have gone.
    pub(crate) fn values(&mut self) -> Result<&mut [f32], CudaError> {
        self.gone.wait()?;
        Ok(&mut self.values)
    }

    /// Queues a copy of some of the values.
    pub(crate) fn queue_values(
        &mut self,
        memory: &DeviceMemory,
        stream: &Stream,
        (to, range): (DeviceSlice<f32>, Range<usize>),
    ) -> Result<(), CudaError> {
        let from = self.values[range.clone()].as_ptr();
        // SAFETY: as many numbers; they are pinned, and only `values` lends them, after it has waited.
        unsafe { memory.queue_write(stream, to.part(range), from)? };
        self.gone.record(stream)
    }
}
