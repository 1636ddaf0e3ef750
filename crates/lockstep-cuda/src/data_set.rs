//! A data set in the memory of a GPU.

use crate::error::CudaError;
use crate::gpu::Gpu;
use crate::memory::{Arena, DeviceMemory};
use crate::network::ResidentMemory;
use crate::streams::Stream;

/// Samples that lie in a GPU's memory, to be gathered there: a row of numbers and a class for each.
pub struct DataSet {
    /// Held for as long as the slices are used.
    _memory: DeviceMemory,
    slices: ResidentMemory,
    samples: usize,
    width: usize,
    /// One more than the largest class.
    classes: usize,
}

impl DataSet {
    /// Brings samples to a GPU: rows of `width` numbers, one after the other, and the class of each.
    ///
    /// # Errors
    /// When there are not as many rows as classes, or the GPU has too little memory.
    pub fn new(
        gpu: &Gpu,
        inputs: &[f32],
        width: usize,
        classes: &[u32],
    ) -> Result<Self, CudaError> {
        let samples = classes.len();
        if inputs.len() != samples * width {
            return Err(CudaError::Mismatch {
                what: "the numbers of a data set",
                found: inputs.len().to_string(),
                expected: format!("{samples} rows of {width}"),
            });
        }
        let bytes = Self::parts(Arena::new(0), samples, width).1;
        let memory = DeviceMemory::new(&gpu.device, bytes, "the data set")?;
        let (slices, _) = Self::parts(Arena::new(memory.address()), samples, width);
        let stream = Stream::new(&gpu.device)?;
        memory.write(&stream, slices.inputs, inputs)?;
        memory.write(&stream, slices.classes, classes)?;
        Ok(Self {
            _memory: memory,
            slices,
            samples,
            width,
            classes: classes.iter().max().map_or(0, |&class| class as usize + 1),
        })
    }

    /// Bytes that so many samples of so many numbers take.
    pub fn bytes(samples: usize, width: usize) -> usize {
        Self::parts(Arena::new(0), samples, width).1
    }

    fn parts(mut arena: Arena, samples: usize, width: usize) -> (ResidentMemory, usize) {
        let slices = ResidentMemory {
            inputs: arena.take(samples * width),
            classes: arena.take(samples),
        };
        (slices, arena.bytes())
    }

    /// Number of samples.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Numbers of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// One more than the largest class.
    pub(crate) fn classes(&self) -> usize {
        self.classes
    }

    pub(crate) fn slices(&self) -> ResidentMemory {
        self.slices
    }
}
