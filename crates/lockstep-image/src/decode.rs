//! The front door: bytes in, an RGB picture out.
//!
//! A file is opened (its header is read), held against the limits, and only then given memory and decoded. Panics of
//! decoders end here as damage, where the build unwinds at all.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::formats::{self, Opened};
use crate::{Format, Header, ImageError, Limits, Orientation};

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
/// If the bytes are no picture, or the header is cut or damaged. Limits are not checked.
pub fn probe(bytes: &[u8]) -> Result<Header, ImageError> {
    let format = Format::of(bytes)?;
    guarded(format, || Ok(formats::open(format, bytes)?.header()))
}

/// Decodes a picture.
///
/// # Errors
/// If the bytes are not a whole, sound picture within the limits.
pub fn decode(bytes: &[u8], limits: &Limits) -> Result<Picture, ImageError> {
    let mut buffers = Buffers::default();
    let (width, height) = buffers.decode(bytes, limits)?;
    buffers.rgb.truncate(width as usize * height as usize * 3);
    Ok(Picture {
        width,
        height,
        rgb: buffers.rgb,
    })
}

/// Memory that is used again for the next picture.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    /// The picture, upright.
    rgb: Vec<u8>,
    /// The picture as it was stored, or what its decoder works in.
    spare: Vec<u8>,
}

/// Buffers that a large picture left behind are given back beyond this many bytes: 16 MiB hold 5.6 megapixels.
pub(crate) const KEEP: usize = 16 << 20;

impl Buffers {
    /// Decodes a picture into [`Buffers::pixels`], and says its width and height.
    pub(crate) fn decode(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
    ) -> Result<(u32, u32), ImageError> {
        let format = Format::of(bytes)?;
        guarded(format, || {
            let opened = formats::open(format, bytes)?;
            let header = opened.header();
            limits.check(&header)?;
            self.read(opened, &header)?;
            Ok(header.upright())
        })
    }

    fn read(&mut self, opened: Box<dyn Opened + '_>, header: &Header) -> Result<(), ImageError> {
        let length = header.pixels() as usize * 3;
        opened.read(grown(&mut self.rgb, length), &mut self.spare)?;
        if header.orientation != Orientation::Upright {
            let upright = grown(&mut self.spare, length);
            header
                .orientation
                .turn(&self.rgb[..length], header.width as usize, upright);
            std::mem::swap(&mut self.rgb, &mut self.spare);
        }
        Ok(())
    }

    /// The RGB pixels of the picture that was decoded last, given its size.
    pub(crate) fn pixels(&self, (width, height): (u32, u32)) -> &[u8] {
        &self.rgb[..width as usize * height as usize * 3]
    }

    /// Gives memory back that only an unusually large picture needed.
    pub(crate) fn trim(&mut self) {
        for buffer in [&mut self.rgb, &mut self.spare] {
            if buffer.capacity() > KEEP {
                *buffer = Vec::new();
            }
        }
    }
}

/// The first `length` bytes of a buffer that grows if it must; what is in them is of no meaning.
pub(crate) fn grown(buffer: &mut Vec<u8>, length: usize) -> &mut [u8] {
    if buffer.len() < length {
        // Not `resize`: what is there need not be copied.
        buffer.clear();
        buffer.reserve_exact(length);
        buffer.resize(length, 0);
    }
    &mut buffer[..length]
}

/// Runs a decoder; its panic is this file's damage, not this process's end.
fn guarded<T>(
    format: Format,
    work: impl FnOnce() -> Result<T, ImageError>,
) -> Result<T, ImageError> {
    // Unwind safety: buffers are overwritten by the next picture, whatever a panic left in them.
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(ImageError::damaged(format, "its decoder gave up on it")))
}
