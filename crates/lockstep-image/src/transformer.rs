//! Files in, pictures of one size out, with buffers that are used again.
//!
//! Only what is kept is resampled: the resampler is given the part of the picture that the crop will show, and reads
//! the pixels around it where its filter reaches beyond, so cutting first and cutting last are the same.

use crate::decode::{Buffers, Pixel, grown};
use crate::resample::{Pixels, Resampler};
use crate::view::Overlap;
use crate::{ByteNormaliser, ImageError, Limits, Transform};

/// Does a [`Transform`] to picture after picture.
#[derive(Debug)]
pub struct Transformer {
    transform: Transform,
    limits: Limits,
    /// Width and height of what comes out.
    size: (u32, u32),
    buffers: Buffers,
    resampler: Resampler,
    /// What is to be seen of the picture.
    part: Vec<Pixel>,
}

impl Transformer {
    /// A transformer; its buffers grow with the first pictures.
    ///
    /// # Errors
    /// If the transform does not say what size comes out.
    pub fn new(transform: &Transform, limits: Limits) -> Result<Transformer, ImageError> {
        let [height, width] = transform.output()?;
        Ok(Transformer {
            transform: transform.clone(),
            limits,
            size: (width, height),
            buffers: Buffers::default(),
            resampler: Resampler::new(transform.filter),
            part: Vec::new(),
        })
    }

    /// Height and width of what comes out.
    pub fn output(&self) -> [u32; 2] {
        [self.size.1, self.size.0]
    }

    /// The numbers of one picture that comes out: height by width by three.
    pub fn output_len(&self) -> usize {
        self.size.0 as usize * self.size.1 as usize * 3
    }

    /// Decodes a file, resizes it and cuts the middle out, into `out`: height by width by red, green, blue.
    ///
    /// # Errors
    /// If the file is not a whole, sound picture within the limits; `out` is then of no meaning. Also if `out` is not
    /// [`Transformer::output_len`] long.
    pub fn apply(&mut self, bytes: &[u8], out: &mut [u8]) -> Result<(), ImageError> {
        self.check(out.len())?;
        let shown = self.show(bytes)?;
        self.write(&shown, |rgb| rgb, out);
        Ok(())
    }

    /// As [`Transformer::apply`], normalised: height by width by three numbers.
    ///
    /// # Errors
    /// As [`Transformer::apply`].
    pub fn apply_normalised(
        &mut self,
        bytes: &[u8],
        normaliser: &ByteNormaliser,
        out: &mut [f32],
    ) -> Result<(), ImageError> {
        self.check(out.len())?;
        let shown = self.show(bytes)?;
        self.write(&shown, |rgb| normaliser.pixel(rgb), out);
        Ok(())
    }

    fn check(&self, length: usize) -> Result<(), ImageError> {
        if length == self.output_len() {
            return Ok(());
        }
        let [height, width] = self.output();
        let what = format!("a buffer of {length} numbers for pictures of {height} x {width} x 3");
        Err(ImageError::Transform(what))
    }

    /// Decodes a picture and resamples what is to be seen of it into `self.part`.
    fn show(&mut self, bytes: &[u8]) -> Result<Overlap, ImageError> {
        let transform = &self.transform;
        let decoded = (self.buffers).decode(bytes, &self.limits, |header| transform.memory(header));
        let shown = decoded.map(|size| {
            let resized = self.transform.resized(size);
            let shown = Overlap::new(resized, self.size);
            let part = grown(
                &mut self.part,
                shown.size.0 as usize * shown.size.1 as usize,
            );
            let source = Pixels {
                pixels: self.buffers.pixels(size),
                size,
            };
            self.resampler.resample(source, resized, &shown, part);
            shown
        });
        self.buffers.trim();
        self.resampler.trim();
        shown
    }

    /// Writes what is shown to its place in `out`, in which everything else is black.
    fn write<T: Copy>(&self, shown: &Overlap, number: impl Fn([u8; 3]) -> [T; 3], out: &mut [T]) {
        let (out, _) = out.as_chunks_mut::<3>();
        if shown.size != self.size {
            out.fill(number([0; 3]));
        }
        let columns = self.size.0 as usize;
        let (left, top) = (shown.target.0 as usize, shown.target.1 as usize);
        let rows = out.chunks_exact_mut(columns).skip(top);
        for (row, part) in rows.zip(
            self.part
                .chunks_exact(shown.size.0 as usize)
                .take(shown.size.1 as usize),
        ) {
            for (out, &[red, green, blue, _]) in row[left..].iter_mut().zip(part) {
                *out = number([red, green, blue]);
            }
        }
    }
}
