//! One module a format, behind one trait.

mod bmp;
mod jpeg;
mod png;
mod webp;

use crate::decode::Pixel;
use crate::{ImageError, PictureFormat, PictureHeader};

/// A file whose header has been read, and whose pixels have not.
pub(crate) trait OpenedPicture {
    /// What the header says.
    fn header(&self) -> PictureHeader;

    /// Decodes the stored pixels into `pixels`, as many as the header says; `spare` is memory to work in.
    fn read(self: Box<Self>, pixels: &mut [Pixel], spare: &mut Vec<u8>) -> Result<(), ImageError>;
}

/// Reads the header of a file of this format.
pub(crate) fn open(
    format: PictureFormat,
    bytes: &[u8],
) -> Result<Box<dyn OpenedPicture + '_>, ImageError> {
    Ok(match format {
        PictureFormat::Jpeg => Box::new(jpeg::Jpeg::open(bytes)?),
        PictureFormat::Png => Box::new(png::Png::open(bytes)?),
        PictureFormat::WebP => Box::new(webp::WebP::open(bytes)?),
        PictureFormat::Bmp => Box::new(bmp::Bmp::open(bytes)?),
    })
}

/// Pixels of one to four channels: gray is repeated, alpha dropped.
fn widen(raw: &[u8], channels: usize, pixels: &mut [Pixel]) {
    for (pixel, raw) in pixels.iter_mut().zip(raw.chunks_exact(channels)) {
        *pixel = if channels < 3 {
            [raw[0], raw[0], raw[0], 0]
        } else {
            [raw[0], raw[1], raw[2], 0]
        };
    }
}
