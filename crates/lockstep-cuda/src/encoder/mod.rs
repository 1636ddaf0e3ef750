//! Encoders on a GPU: pictures become vectors, with the bits of lockstep-nn's encoders.
//!
//! Pictures come in bunches. A bunch is queued, and while the GPU computes it the host may prepare the next one, in memory
//! that the GPU reads by itself.

mod attention;
mod clip;
mod efficientnet;
mod norm;
mod place;
mod product;

use crate::driver::Device;
use crate::error::CudaError;
use crate::gpu::Gpu;
use crate::launch::{Launch, LoadedLaunch, load_all};
use crate::memory::{DeviceMemory, DeviceSlice};
use crate::pinned::Pinned;
use crate::streams::{Event, Graph, Stream};
use clip::ClipPlan;
use efficientnet::LitePlan;
use lockstep_nn::encoder::EncoderParts;
use place::Placer;
use std::sync::Arc;

/// Bunches that may be under way: one is computed while the next is prepared.
pub const BUNCHES: usize = 2;

/// A network that turns pictures into vectors, on a GPU.
pub struct GpuEncoder {
    // Dropped first: they wait for what is queued on them.
    copies: Stream,
    stream: Stream,
    bunches: [Bunch; BUNCHES],
    memory: DeviceMemory,
    plan: Plan,
    gpu: Gpu,
    /// The most pictures of a bunch.
    rows: usize,
    /// Numbers of a picture, and of its vector.
    shape: [usize; 2],
    /// Bunches that were queued, and that were taken.
    queued: usize,
    taken: usize,
}

/// Where a bunch lies, here and there.
struct Bunch {
    pictures: Pinned<f32>,
    vectors: Pinned<f32>,
    on_device: BunchPlace,
    /// What computes a full one.
    graph: Graph,
    /// When its pictures have come, and when its vectors are there.
    come: Event,
    done: Event,
    rows: usize,
}

/// Where a bunch lies in the GPU's memory.
#[derive(Debug, Clone, Copy)]
struct BunchPlace {
    pictures: DeviceSlice<f32>,
    vectors: DeviceSlice<f32>,
}

/// What lies where, and what is launched.
struct Plan {
    network: NetworkPlan,
    bunches: [BunchPlace; BUNCHES],
}

enum NetworkPlan {
    Clip(ClipPlan),
    Lite(LitePlan),
}

impl Plan {
    fn new(parts: &EncoderParts, rows: usize, placer: &mut Placer<'_>) -> Result<Self, CudaError> {
        let bunch = |placer: &mut Placer<'_>| BunchPlace {
            pictures: placer.room(rows * parts.input().len()),
            vectors: placer.room(rows * parts.width()),
        };
        Ok(Self {
            bunches: [bunch(placer), bunch(placer)],
            network: match parts {
                EncoderParts::Clip(parts) => NetworkPlan::Clip(ClipPlan::new(parts, rows, placer)?),
                EncoderParts::EfficientNetLite(parts) => {
                    NetworkPlan::Lite(LitePlan::new(parts, rows, placer)?)
                }
            },
        })
    }

    /// What computes so many pictures.
    fn launches(&self, rows: usize, bunch: BunchPlace) -> Vec<Launch> {
        match &self.network {
            NetworkPlan::Clip(plan) => plan.launches(rows, bunch),
            NetworkPlan::Lite(plan) => plan.launches(rows, bunch),
        }
    }
}

impl Bunch {
    fn new(
        device: &Arc<dyn Device>,
        on_device: BunchPlace,
        stream: &Stream,
        launches: &[LoadedLaunch],
    ) -> Result<Self, CudaError> {
        Ok(Self {
            pictures: Pinned::zeros(device, on_device.pictures.len())?,
            vectors: Pinned::zeros(device, on_device.vectors.len())?,
            graph: Graph::new(device, stream, launches)?,
            come: Event::new(device)?,
            done: Event::new(device)?,
            on_device,
            rows: 0,
        })
    }
}

impl GpuEncoder {
    /// Brings an encoder to a GPU, for up to `rows` pictures at a time.
    ///
    /// # Errors
    /// When so many pictures are more than kernels can count, or the GPU has too little memory.
    pub fn new(gpu: &Gpu, parts: &EncoderParts, rows: usize) -> Result<Self, CudaError> {
        let rows = rows.max(1);
        let device = &gpu.device;
        let bytes = Self::memory_needed(parts, rows)?;
        let memory = DeviceMemory::new(device, bytes, "an encoder")?;
        let (copies, stream) = (Stream::new(device)?, Stream::new(device)?);
        let plan = Plan::new(parts, rows, &mut Placer::into(&memory, &stream))?;
        let bunch = |place| {
            let launches = load_all(device, plan.launches(rows, place))?;
            Bunch::new(device, place, &stream, &launches)
        };
        let [first, second] = plan.bunches;
        Ok(Self {
            bunches: [bunch(first)?, bunch(second)?],
            shape: [parts.input().len(), parts.width()],
            queued: 0,
            taken: 0,
            gpu: gpu.clone(),
            copies,
            stream,
            memory,
            plan,
            rows,
        })
    }

    /// Bytes of a GPU's memory that an encoder takes for so many pictures at a time. No GPU is needed to say so.
    ///
    /// # Errors
    /// When they are more than kernels can count.
    pub fn memory_needed(parts: &EncoderParts, rows: usize) -> Result<usize, CudaError> {
        let mut counted = Placer::counting();
        Plan::new(parts, rows.max(1), &mut counted)?;
        Ok(counted.bytes())
    }

    /// The most pictures of a bunch.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Numbers of a picture's vector.
    pub fn width(&self) -> usize {
        self.shape[1]
    }

    /// Bunches that were queued and whose vectors were not taken.
    pub fn under_way(&self) -> usize {
        self.queued - self.taken
    }

    /// Room for the pictures of the next bunch, one after the other: normalised pixels, channels innermost.
    ///
    /// # Errors
    /// When the vectors of a bunch have to be taken first.
    pub fn pictures(&mut self) -> Result<&mut [f32], CudaError> {
        self.check_room()?;
        Ok(&mut self.bunches[self.queued % BUNCHES].pictures)
    }

    /// Queues the bunch, of which the first `rows` pictures are there.
    ///
    /// # Errors
    /// When there are not so many, the vectors of a bunch have to be taken first, or something before has failed.
    pub fn queue(&mut self, rows: usize) -> Result<(), CudaError> {
        self.check_room()?;
        if rows > self.rows {
            return Err(CudaError::Mismatch {
                what: "the pictures of a bunch",
                found: rows.to_string(),
                expected: format!("at most {}", self.rows),
            });
        }
        let bunch = &mut self.bunches[self.queued % BUNCHES];
        bunch.rows = rows;
        self.queued += 1;
        if rows == 0 {
            return Ok(());
        }
        let BunchPlace { pictures, vectors } = bunch.on_device;
        let [input, width] = self.shape;
        let pictures = pictures.first(rows * input);
        // SAFETY: what is copied is pinned, as long as is said, and belongs to the bunch until its vectors are taken, which
        // waits for all of this. The memory is dropped after the streams.
        unsafe {
            let from = bunch.pictures.as_ptr();
            self.memory.queue_write(&self.copies, pictures, from)?;
            bunch.come.record(&self.copies)?;
            self.stream.wait_for(&bunch.come)?;
            match rows == self.rows {
                true => self.stream.launch_graph(&bunch.graph)?,
                false => {
                    let launches = self.plan.launches(rows, bunch.on_device);
                    let launches = load_all(&self.gpu.device, launches)?;
                    self.stream.launch(&launches)?;
                }
            }
            let to = bunch.vectors.as_mut_ptr();
            let vectors = vectors.first(rows * width);
            self.memory.queue_read(&self.stream, vectors, to)?;
        }
        bunch.done.record(&self.stream)
    }

    /// The vectors of the oldest bunch that was queued, once they are there.
    ///
    /// # Errors
    /// When none was queued, or something before has failed.
    pub fn take(&mut self) -> Result<&[f32], CudaError> {
        if self.under_way() == 0 {
            return Err(CudaError::Mismatch {
                what: "vectors of a bunch",
                found: "no bunch".to_owned(),
                expected: "one that was queued".to_owned(),
            });
        }
        let bunch = &self.bunches[self.taken % BUNCHES];
        if bunch.rows > 0 {
            bunch.done.wait()?;
        }
        self.taken += 1;
        Ok(&bunch.vectors[..bunch.rows * self.shape[1]])
    }

    fn check_room(&self) -> Result<(), CudaError> {
        match self.under_way() < BUNCHES {
            true => Ok(()),
            false => Err(CudaError::Mismatch {
                what: "bunches of pictures",
                found: format!("{BUNCHES} under way"),
                expected: "vectors that are taken before the next".to_owned(),
            }),
        }
    }
}
