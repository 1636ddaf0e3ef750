//! Files in, pictures of one size out, with buffers that are used again.
//!
//! Only what is kept is resampled: the resampler is given the part of the picture that the crop will show, and reads
//! the pixels around it where its filter reaches beyond, so cutting first and cutting last are the same.

use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::U8x3;
use fast_image_resize::{FilterType, ResizeAlg, ResizeOptions, Resizer};

use crate::decode::{Buffers, grown};
use crate::view::{Overlap, place};
use crate::{Filter, ImageError, Limits, Normalise, Normaliser, Transform, View};

/// Does a [`Transform`] to picture after picture.
#[derive(Debug)]
pub struct Transformer {
    transform: Transform,
    limits: Limits,
    /// Width and height of what comes out.
    size: (u32, u32),
    buffers: Buffers,
    resizer: Resizer,
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
            resizer: Resizer::new(),
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
        let options = options(self.transform.filter, decoded, resized, &shown);
        let pixels = self.buffers.pixels(decoded);
        if shown.size == self.size {
            resize(
                &mut self.resizer,
                pixels,
                decoded,
                out,
                shown.size,
                &options,
            );
            return;
        }
        let row = shown.size.0 as usize * 3;
        let part = grown(&mut self.part, row * shown.size.1 as usize);
        resize(
            &mut self.resizer,
            pixels,
            decoded,
            part,
            shown.size,
            &options,
        );
        out.fill(0);
        for (number, part) in part.chunks_exact(row).enumerate() {
            out[place(self.size.0, shown.target, number)..][..row].copy_from_slice(part);
        }
    }
}

/// The resampler's settings for the part of a picture of `decoded` size that is shown once it is `resized`.
fn options(
    filter: Filter,
    decoded: (u32, u32),
    resized: (u32, u32),
    shown: &Overlap,
) -> ResizeOptions {
    let algorithm = match filter {
        Filter::Bilinear => ResizeAlg::Convolution(FilterType::Bilinear),
        Filter::Bicubic => ResizeAlg::Convolution(FilterType::CatmullRom),
        Filter::Lanczos => ResizeAlg::Convolution(FilterType::Lanczos3),
        Filter::Nearest => ResizeAlg::Nearest,
    };
    let (left, width) = span(decoded.0, resized.0, shown.source.0, shown.size.0);
    let (top, height) = span(decoded.1, resized.1, shown.source.1, shown.size.1);
    ResizeOptions::new()
        .resize_alg(algorithm)
        .crop(left, top, width, height)
        .use_alpha(false)
}

/// Start and length before resizing of what `start` and `length` are after it.
fn span(decoded: u32, resized: u32, start: u32, length: u32) -> (f64, f64) {
    let scale = f64::from(decoded) / f64::from(resized);
    let from = f64::from(start) * scale;
    // Rounding must not reach beyond the picture.
    (
        from,
        (f64::from(length) * scale).min(f64::from(decoded) - from),
    )
}

fn resize(
    resizer: &mut Resizer,
    pixels: &[u8],
    (width, height): (u32, u32),
    out: &mut [u8],
    (columns, rows): (u32, u32),
    options: &ResizeOptions,
) {
    let from = TypedImageRef::<U8x3>::from_buffer(width, height, pixels)
        .expect("as many bytes as pixels ask for");
    let mut to = TypedImage::<U8x3>::from_buffer(columns, rows, out)
        .expect("as many bytes as pixels ask for");
    resizer
        .resize_typed(&from, &mut to, options)
        .expect("a part inside of the picture");
}
