//! What computes vectors: the processor, or a GPU that computes a bunch of pictures while the next is decoded.

use crate::EmbedError;
use lockstep_cuda::{BUNCHES, Gpu, GpuEncoder};
use lockstep_nn::encoder::{Encoder, EncoderParts};
use lockstep_nn::{Precision, Threads};
use std::ops::RangeInclusive;

/// Pictures that a GPU encodes at a time: with fewer it would mostly wait, and more do not make it faster.
const GPU_ROWS: RangeInclusive<usize> = 64..=256;

/// Pictures of a bunch on a GPU, where the job asks for so many at a time.
fn gpu_rows(batch: usize) -> usize {
    batch.clamp(*GPU_ROWS.start(), *GPU_ROWS.end())
}

/// Bytes of a GPU's memory that an encoder takes where the job asks for so many pictures at a time.
///
/// # Errors
/// When they are more than kernels can count.
pub fn gpu_memory(parts: &EncoderParts, batch: usize) -> Result<usize, EmbedError> {
    Ok(GpuEncoder::memory_needed(parts, gpu_rows(batch))?)
}

/// An encoder that is given bunches of pictures. Vectors come in the order of the pictures.
pub(crate) enum BunchEncoder {
    /// On the processor, with room for the pixels of a bunch.
    Processor(Encoder, Vec<f32>),
    /// On a GPU.
    Gpu(Box<GpuEncoder>),
}

impl BunchEncoder {
    /// Of an encoder's parts, for about `batch` pictures at a time, on a GPU or on these threads.
    ///
    /// # Errors
    /// When the GPU cannot compute in this precision, or has too little memory.
    pub(crate) fn new(
        precision: Precision,
        parts: EncoderParts,
        batch: usize,
        threads: &Threads,
        gpu: Option<&Gpu>,
    ) -> Result<Self, EmbedError> {
        Ok(match gpu {
            Some(_) if precision == Precision::Fixed16 => return Err(EmbedError::PrecisionOnGpu),
            Some(gpu) => Self::Gpu(Box::new(GpuEncoder::new(gpu, &parts, gpu_rows(batch))?)),
            None => {
                let encoder = Encoder::in_precision(precision, threads, parts, batch);
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

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_base::random::Stream;
    use lockstep_cuda::driver::emulated::EmulatedDriver;
    use lockstep_nn::encoder::ClipConfig;

    fn parts() -> EncoderParts {
        let config = ClipConfig {
            hidden_size: 8,
            intermediate_size: 12,
            projection_dim: 5,
            num_hidden_layers: 1,
            num_attention_heads: 2,
            image_size: 4,
            patch_size: 2,
            ..ClipConfig::default()
        };
        let mut numbers = Stream::new(9, 0);
        let mut tensors = |_: &str, shape: &[usize]| {
            let count = shape.iter().product::<usize>();
            Ok((0..count).map(|_| numbers.unit_f32() - 0.4).collect())
        };
        EncoderParts::clip(&config, &mut tensors).unwrap()
    }

    /// The vectors of pictures that come in bunches, as a part has them.
    fn vectors(encoder: &mut BunchEncoder, pictures: &[f32]) -> Vec<u32> {
        let mut vectors = Vec::new();
        for bunch in pictures.chunks(encoder.rows() * 48) {
            encoder.pixels().unwrap()[..bunch.len()].copy_from_slice(bunch);
            encoder.encode(bunch.len() / 48, &mut vectors).unwrap();
        }
        encoder.finish(&mut vectors).unwrap();
        vectors.iter().map(|x| x.to_bits()).collect()
    }

    #[test]
    fn a_gpu_makes_the_vectors_of_the_processor_in_their_order() {
        let Some(driver) = EmulatedDriver::if_it_works(&lockstep_testkit::cache()) else {
            return;
        };
        let gpu = Gpu::of(&driver, 0).unwrap();
        let threads = Threads::default();
        let new = |precision, gpu| BunchEncoder::new(precision, parts(), 3, &threads, gpu);
        let mut processor = new(Precision::F32, None).unwrap();
        let mut on_gpu = new(Precision::F32, Some(&gpu)).unwrap();
        let refused = new(Precision::Fixed16, Some(&gpu)).err();
        assert!(matches!(refused, Some(EmbedError::PrecisionOnGpu)));
        assert_eq!((processor.rows(), on_gpu.rows()), (3, 64));
        // Of three bunches on the GPU, the last is short; and then of one, after which nothing is left over.
        let mut numbers = Stream::new(1, 0);
        let pictures: Vec<f32> = (0..48 * 150).map(|_| numbers.unit_f32()).collect();
        for pictures in [&pictures[..], &pictures[..48 * 2]] {
            let expected = vectors(&mut processor, pictures);
            assert_eq!(expected.len(), pictures.len() / 48 * 5);
            assert_eq!(vectors(&mut on_gpu, pictures), expected);
        }
    }

    #[test]
    fn a_gpu_is_given_enough_pictures_and_not_too_many() {
        assert_eq!([1, 64, 100, 4096].map(gpu_rows), [64, 64, 100, 256]);
        assert!(gpu_memory(&parts(), 1).unwrap() > 64 * 2 * 48 * 4);
    }
}
