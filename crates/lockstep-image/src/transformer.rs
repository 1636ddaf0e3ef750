//! Files in, pictures of one size out, with buffers that are used again.
//!
//! Only what is kept is resampled: the resampler is given the part of the picture that the crop will show, and reads
//! the pixels around it where its filter reaches beyond, so cutting first and cutting last are the same.

use crate::decode::{Buffers, grown};
use crate::resample::{Pixels, Resampler};
use crate::view::{Overlap, place};
use crate::{ImageError, Limits, Normalise, Normaliser, Transform, View};

/// Does a [`Transform`] to picture after picture.
#[derive(Debug)]
pub struct Transformer {
    transform: Transform,
    limits: Limits,
    /// Width and height of what comes out.
    size: (u32, u32),
    buffers: Buffers,
    resampler: Resampler,
    /// The part of the output that a smaller picture fills.
    part: Vec<u8>,
    /// The output in bytes, before it is normalised.
    pixels: Vec<u8>,
    normaliser: Option<Normaliser>,
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
            pixels: Vec::new(),
            normaliser: None,
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
        self.apply_view(bytes, &View::default(), out)
    }

    /// The same, of a part that the caller chose.
    ///
    /// # Errors
    /// As [`Transformer::apply`].
    pub fn apply_view(
        &mut self,
        bytes: &[u8],
        view: &View,
        out: &mut [u8],
    ) -> Result<(), ImageError> {
        self.check(out.len())?;
        let decoded = self
            .buffers
            .decode(bytes, &self.limits)
            .map(|size| self.resample(size, view, out));
        self.buffers.trim();
        self.resampler.trim();
        decoded.map(|()| view.mirror(out, self.size.0))
    }

    /// As [`Transformer::apply`], normalised: height by width by three numbers.
    ///
    /// # Errors
    /// As [`Transformer::apply`].
    pub fn apply_normalised(
        &mut self,
        bytes: &[u8],
        normalise: &Normalise,
        out: &mut [f32],
    ) -> Result<(), ImageError> {
        self.apply_view_normalised(bytes, &View::default(), normalise, out)
    }

    /// The same, of a part that the caller chose.
    ///
    /// # Errors
    /// As [`Transformer::apply`].
    pub fn apply_view_normalised(
        &mut self,
        bytes: &[u8],
        view: &View,
        normalise: &Normalise,
        out: &mut [f32],
    ) -> Result<(), ImageError> {
        self.check(out.len())?;
        let mut pixels = std::mem::take(&mut self.pixels);
        let done = self.apply_view(bytes, view, grown(&mut pixels, out.len()));
        self.pixels = pixels;
        done?;
        let known = self
            .normaliser
            .take()
            .filter(|normaliser| normaliser.normalise() == normalise);
        let normaliser = self
            .normaliser
            .insert(known.unwrap_or_else(|| Normaliser::new(normalise)));
        normaliser.apply(&self.pixels[..out.len()], out);
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

    /// Resamples the part of the decoded picture that `out` shows.
    fn resample(&mut self, decoded: (u32, u32), view: &View, out: &mut [u8]) {
        let resized = self.transform.resized(decoded);
        let shown = Overlap::new(resized, self.size, view.offset(resized, self.size));
        let source = Pixels {
            rgb: self.buffers.pixels(decoded),
            size: decoded,
        };
        if shown.size == self.size {
            self.resampler.resample(source, resized, &shown, out);
            return;
        }
        let row = shown.size.0 as usize * 3;
        let part = grown(&mut self.part, row * shown.size.1 as usize);
        self.resampler.resample(source, resized, &shown, part);
        out.fill(0);
        for (number, part) in part.chunks_exact(row).enumerate() {
            out[place(self.size.0, shown.target, number)..][..row].copy_from_slice(part);
        }
    }
}
