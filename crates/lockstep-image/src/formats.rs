//! One module a format, behind one trait.

mod bmp;
mod jpeg;
mod png;
mod webp;

use crate::{Format, Header, ImageError};

/// A file whose header has been read, and whose pixels have not.
pub(crate) trait Opened {
    /// What the header says.
    fn header(&self) -> Header;

    /// Decodes the stored pixels, three bytes each, into `rgb`, which is exactly as long; `spare` is memory to work in.
    fn read(self: Box<Self>, rgb: &mut [u8], spare: &mut Vec<u8>) -> Result<(), ImageError>;
}

/// Reads the header of a file of this format.
pub(crate) fn open(format: Format, bytes: &[u8]) -> Result<Box<dyn Opened + '_>, ImageError> {
    Ok(match format {
        Format::Jpeg => Box::new(jpeg::Jpeg::open(bytes)?),
        Format::Png => Box::new(png::Png::open(bytes)?),
        Format::WebP => Box::new(webp::WebP::open(bytes)?),
        Format::Bmp => Box::new(bmp::Bmp::open(bytes)?),
    })
}
