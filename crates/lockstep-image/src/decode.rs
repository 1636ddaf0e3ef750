//! The front door: bytes in, an RGB picture out.
//!
//! A file is opened (its header is read), held against the limits, and only then given memory and decoded. Panics of
//! decoders end here as damage, where the build unwinds at all.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::formats::{self, OpenedPicture};
use crate::{ImageError, Limits, Orientation, PictureFormat, PictureHeader};

/// A decoded picture, upright.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
    /// Red, green and blue of every pixel, row by row from the top.
    pub rgb: Vec<u8>,
}

/// What a file says of its picture; reads the header and decodes nothing.
///
/// # Errors
/// If the bytes are not a picture, or the header is cut or damaged. Limits are not checked.
pub fn probe(bytes: &[u8]) -> Result<PictureHeader, ImageError> {
    let format = PictureFormat::of(bytes)?;
    guarded(format, || Ok(formats::open(format, bytes)?.header()))
}

/// Decodes a picture.
///
/// # Errors
/// If the bytes are not a whole, sound picture within the limits.
pub fn decode(bytes: &[u8], limits: &Limits) -> Result<Picture, ImageError> {
    let mut buffers = Buffers::default();
    let (width, height) = buffers.decode(bytes, limits, PictureHeader::memory)?;
    let pixels = width as usize * height as usize;
    // In place: a copy would take as much memory again.
    let mut rgb = buffers.pixels.into_flattened();
    for pixel in 0..pixels {
        for channel in 0..3 {
            rgb[3 * pixel + channel] = rgb[4 * pixel + channel];
        }
    }
    rgb.truncate(3 * pixels);
    Ok(Picture { width, height, rgb })
}

/// Red, green, blue, and a byte of no meaning: four bytes are faster to write and to resample than three.
pub(crate) type Pixel = [u8; 4];

/// Memory that is used again for the next picture.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    /// The picture, upright.
    pixels: Vec<Pixel>,
    /// The picture before it was turned.
    turned: Vec<Pixel>,
    /// What its decoder works in.
    spare: Vec<u8>,
}

/// Buffers that a large picture left behind are given back beyond this many bytes: 16 MiB hold 4 megapixels.
pub(crate) const KEEP: usize = 16 << 20;

impl Buffers {
    /// Decodes a picture into [`Buffers::pixels`], and says its width and height. `needed` says what all that is done
    /// to a picture takes.
    pub(crate) fn decode(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        needed: impl FnOnce(&PictureHeader) -> u64,
    ) -> Result<(u32, u32), ImageError> {
        let format = PictureFormat::of(bytes)?;
        guarded(format, || {
            let opened = formats::open(format, bytes)?;
            let header = opened.header();
            limits.check(&header, needed(&header))?;
            self.read(opened, &header)?;
            Ok(header.upright())
        })
    }

    fn read(
        &mut self,
        opened: Box<dyn OpenedPicture + '_>,
        header: &PictureHeader,
    ) -> Result<(), ImageError> {
        let length = header.pixels() as usize;
        opened.read(grown(&mut self.pixels, length), &mut self.spare)?;
        if header.orientation != Orientation::Upright {
            let upright = grown(&mut self.turned, length);
            header
                .orientation
                .turn(&self.pixels[..length], header.width as usize, upright);
            std::mem::swap(&mut self.pixels, &mut self.turned);
        }
        Ok(())
    }

    /// The picture that was decoded last, given its size.
    pub(crate) fn pixels(&mut self, (width, height): (u32, u32)) -> &mut [Pixel] {
        &mut self.pixels[..width as usize * height as usize]
    }

    /// Gives memory back that only an unusually large picture needed.
    pub(crate) fn trim(&mut self) {
        trim(&mut self.pixels);
        trim(&mut self.turned);
        trim(&mut self.spare);
    }
}

/// Empties a buffer that is larger than what is kept.
pub(crate) fn trim<T>(buffer: &mut Vec<T>) {
    if buffer.capacity() * size_of::<T>() > KEEP {
        *buffer = Vec::new();
    }
}

/// The first `length` places of a buffer that grows if it must; what is in them is of no meaning.
pub(crate) fn grown<T: Copy + Default>(buffer: &mut Vec<T>, length: usize) -> &mut [T] {
    if buffer.len() < length {
        // Not `resize` alone: what is there need not be copied.
        buffer.clear();
        buffer.reserve_exact(length);
        buffer.resize(length, T::default());
    }
    &mut buffer[..length]
}

/// Runs a decoder; its panic is this file's damage, not this process's end.
fn guarded<T>(
    format: PictureFormat,
    work: impl FnOnce() -> Result<T, ImageError>,
) -> Result<T, ImageError> {
    // Unwind safety: buffers are overwritten by the next picture, whatever a panic left in them.
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(ImageError::damaged(format, "its decoder gave up on it")))
}
