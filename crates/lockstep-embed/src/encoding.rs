//! What computes vectors: the processor, or a GPU that computes a bunch of pictures while the next is decoded.

use crate::{EmbedError, EncoderModel};
use lockstep_cuda::{BUNCHES, Gpu, GpuEncoder};
use lockstep_nn::Threads;
use lockstep_nn::encoder::Encoder;
use std::ops::RangeInclusive;

/// Pictures that a GPU encodes at a time: with fewer it would mostly wait, and more do not make it faster.
const GPU_ROWS: RangeInclusive<usize> = 64..=256;

/// Pictures of a bunch on a GPU, where the job asks for so many at a time.
pub(crate) fn gpu_rows(batch: usize) -> usize {
    batch.clamp(*GPU_ROWS.start(), *GPU_ROWS.end())
}

/// An encoder that is given bunches of pictures. Vectors come in the order of the pictures.
pub(crate) enum BunchEncoder {
    /// On the processor, with room for the pixels of a bunch.
    Processor(Encoder, Vec<f32>),
    /// On a GPU.
    Gpu(GpuEncoder),
}

impl BunchEncoder {
    /// The model's, for about `batch` pictures at a time, on a GPU or on these threads.
    pub(crate) fn open(
        model: &EncoderModel,
        batch: usize,
        threads: &Threads,
        gpu: Option<&Gpu>,
    ) -> Result<Self, EmbedError> {
        let parts = model.parts()?;
        Ok(match gpu {
            Some(gpu) => Self::Gpu(GpuEncoder::new(gpu, &parts, gpu_rows(batch))?),
            None => {
                let encoder = Encoder::new(threads, parts, batch);
                let pixels = vec![0.0; batch * encoder.input().len()];
                Self::Processor(encoder, pixels)
            }
        })
    }

    /// The most pictures of a bunch.
    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::Processor(encoder, pixels) => pixels.len() / encoder.input().len(),
            Self::Gpu(encoder) => encoder.rows(),
        }
    }

    /// Numbers of a vector.
    pub(crate) fn width(&self) -> usize {
        match self {
            Self::Processor(encoder, _) => encoder.width(),
            Self::Gpu(encoder) => encoder.width(),
        }
    }

    /// Room for the pixels of the next bunch.
    pub(crate) fn pixels(&mut self) -> Result<&mut [f32], EmbedError> {
        Ok(match self {
            Self::Processor(_, pixels) => pixels,
            Self::Gpu(encoder) => encoder.pictures()?,
        })
    }

    /// Encodes the bunch, of which so many pictures are there. Appends vectors, of this bunch or of one before it.
    pub(crate) fn encode(&mut self, rows: usize, to: &mut Vec<f32>) -> Result<(), EmbedError> {
        match self {
            Self::Processor(encoder, pixels) => {
                let start = to.len();
                to.resize(start + rows * encoder.width(), 0.0);
                let images = &pixels[..rows * encoder.input().len()];
                encoder.encode(rows, images, &mut to[start..]);
            }
            Self::Gpu(encoder) => {
                encoder.queue(rows)?;
                if encoder.under_way() == BUNCHES {
                    to.extend_from_slice(encoder.take()?);
                }
            }
        }
        Ok(())
    }

    /// Appends the vectors that are still missing.
    pub(crate) fn finish(&mut self, to: &mut Vec<f32>) -> Result<(), EmbedError> {
        if let Self::Gpu(encoder) = self {
            while encoder.under_way() > 0 {
                to.extend_from_slice(encoder.take()?);
                lockstep_base::progress::advance();
            }
        }
        Ok(())
    }
}
