//! A data set in the memory of a GPU.

use crate::epoch::check;
use crate::error::CudaError;
use crate::gpu::Gpu;
use crate::images::{ImageMemory, Images};
use crate::memory::{Arena, DeviceMemory};
use crate::rows::{RowLists, RowShape};
use crate::setup::InputPlace;
use crate::streams::Stream;
use std::ops::Range;
use std::sync::Arc;

/// Numbers of inputs that are brought to a GPU at a time.
const PART: usize = 16 << 20;

/// Samples, in this process's memory.
#[derive(Clone, Copy)]
pub struct Samples<'a> {
    /// Numbers of a row of inputs.
    pub width: usize,
    /// Rows of inputs.
    pub inputs: &'a dyn InputRows,
    /// What a network is to say of each.
    pub targets: SampleTargets<'a>,
    /// How much each counts; empty where all count alike.
    pub weights: &'a [f32],
}

/// What a network is to say of samples.
#[derive(Debug, Clone, Copy)]
pub enum SampleTargets<'a> {
    /// The class of each.
    Classes(&'a [u32]),
    /// So many numbers or labels of each, one row after the other.
    Numbers(usize, &'a [f32]),
}

/// Samples that lie in a GPU's memory, to be gathered there, or images, to be seen there. Every clone is the same memory.
#[derive(Clone)]
pub struct DataSet {
    /// Held for as long as what lies there is used.
    _memory: Arc<DeviceMemory>,
    content: SetMemory,
    samples: usize,
    /// What is known of each sample; of images, that is their inputs.
    shape: RowShape,
    /// One more than the largest class.
    classes: usize,
}

/// Where samples lie.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SetMemory {
    /// As rows that a network reads.
    Rows(RowLists),
    /// As images that become such rows.
    Images(ImageMemory),
}

impl DataSet {
    /// Brings samples to a GPU.
    ///
    /// # Errors
    /// When there are not as many rows as targets, or the GPU has too little memory.
    pub fn new(gpu: &Gpu, content: Samples<'_>) -> Result<Self, CudaError> {
        let (samples, classes, numbers) = match content.targets {
            SampleTargets::Classes(classes) => (classes.len(), classes, &[][..]),
            SampleTargets::Numbers(width, numbers) => {
                (numbers.len() / width.max(1), &[][..], numbers)
            }
        };
        let shape = content.shape();
        check(
            "the numbers of a data set",
            numbers.len(),
            samples * shape.numbers,
        )?;
        if shape.is_weighted {
            check("the weights of a data set", content.weights.len(), samples)?;
        }
        let memory = DeviceMemory::new(&gpu.device, Self::bytes(samples, shape), "the data set")?;
        let lists = RowLists::new(&mut Arena::new(memory.address()), shape, samples);
        let stream = Stream::new(&gpu.device)?;
        let rows = (PART / shape.inputs.max(1)).clamp(1, samples.max(1));
        let mut part = vec![0.0; rows * shape.inputs];
        for first in (0..samples).step_by(rows) {
            let range = first..(first + rows).min(samples);
            let part = &mut part[..range.len() * shape.inputs];
            content.inputs.write(range, part);
            let start = first * shape.inputs;
            let to = lists.inputs.part(start..start + part.len());
            memory.write(&stream, to, part)?;
        }
        memory.write(&stream, lists.classes, classes)?;
        memory.write(&stream, lists.numbers, numbers)?;
        memory.write(&stream, lists.weights, content.weights)?;
        Ok(Self {
            _memory: Arc::new(memory),
            content: SetMemory::Rows(lists),
            samples,
            shape,
            classes: classes.iter().max().map_or(0, |&class| class as usize + 1),
        })
    }

    /// Brings images to a GPU, of which only inputs are made there: what the network is to say of each, the host tells with
    /// each batch.
    ///
    /// # Errors
    /// When the parts do not fit each other, or the GPU has too little memory.
    pub fn of_images(gpu: &Gpu, images: &Images<'_>) -> Result<Self, CudaError> {
        let (memory, images) = ImageMemory::new(gpu, images)?;
        Ok(Self {
            _memory: Arc::new(memory),
            content: SetMemory::Images(images),
            samples: images.count(),
            shape: RowShape {
                inputs: images.len(),
                numbers: 0,
                is_weighted: false,
                is_mixed: false,
            },
            classes: 0,
        })
    }

    /// What a setup says of inputs that come from it.
    pub fn place(&self) -> InputPlace {
        match self.content {
            SetMemory::Rows(_) => InputPlace::Resident,
            SetMemory::Images(_) => InputPlace::Images,
        }
    }

    /// Bytes of a GPU's memory that so many samples take.
    pub fn bytes(samples: usize, shape: RowShape) -> usize {
        let mut arena = Arena::new(0);
        RowLists::new(&mut arena, shape, samples);
        arena.bytes()
    }

    /// Number of samples.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// What is known of each.
    pub fn shape(&self) -> RowShape {
        self.shape
    }

    /// One more than the largest class.
    pub(crate) fn classes(&self) -> usize {
        self.classes
    }

    pub(crate) fn content(&self) -> SetMemory {
        self.content
    }
}

/// Inputs of samples that are asked for part by part, so that nobody need have all of them at once.
pub trait InputRows {
    /// Writes the inputs of some samples, row after row.
    fn write(&self, samples: Range<usize>, to: &mut [f32]);
}

/// All of them, one after the other.
impl InputRows for Vec<f32> {
    fn write(&self, samples: Range<usize>, to: &mut [f32]) {
        let width = to.len() / samples.len().max(1);
        to.copy_from_slice(&self[samples.start * width..samples.end * width]);
    }
}

impl<F: Fn(Range<usize>, &mut [f32])> InputRows for F {
    fn write(&self, samples: Range<usize>, to: &mut [f32]) {
        self(samples, to);
    }
}

impl Samples<'_> {
    /// What there is of each.
    pub fn shape(&self) -> RowShape {
        RowShape {
            inputs: self.width,
            numbers: match self.targets {
                SampleTargets::Classes(_) => 0,
                SampleTargets::Numbers(width, _) => width,
            },
            is_weighted: !self.weights.is_empty(),
            is_mixed: false,
        }
    }
}
