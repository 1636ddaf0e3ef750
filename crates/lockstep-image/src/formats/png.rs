//! PNG, by the png crate: every colour type and depth, interlaced or not; of an animated one, its still picture.

use std::io::Cursor;

use png::{ColorType, Decoder, DecodingError, Limits, Reader, Transformations};

use super::{OpenedPicture, widen};
use crate::decode::{Pixel, grown};
use crate::{ImageError, Orientation, PictureFormat, PictureHeader, exif};

/// A PNG whose chunks before the pixels have been read.
pub(super) struct Png<'a> {
    reader: Reader<Cursor<&'a [u8]>>,
}

/// What chunks beside the pixels may take; their sizes are the file's word.
const CHUNKS: usize = 1 << 20;

impl<'a> Png<'a> {
    pub(super) fn open(bytes: &'a [u8]) -> Result<Png<'a>, ImageError> {
        let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), Limits { bytes: CHUNKS });
        decoder.set_ignore_text_chunk(true);
        decoder.set_ignore_iccp_chunk(true);
        // To 8 bits, palettes looked up, and what is less than 8 bits scaled.
        decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
        let reader = decoder.read_info().map_err(in_words)?;
        // The decoder would panic.
        if reader
            .info()
            .palette
            .as_ref()
            .is_some_and(|palette| palette.len() % 3 != 0)
        {
            return Err(ImageError::damaged(
                PictureFormat::Png,
                "its palette ends within a colour",
            ));
        }
        Ok(Png { reader })
    }
}

impl OpenedPicture for Png<'_> {
    fn header(&self) -> PictureHeader {
        let info = self.reader.info();
        let pixels = u64::from(info.width) * u64::from(info.height);
        let channels = self.reader.output_color_type().0.samples() as u64;
        PictureHeader {
            format: PictureFormat::Png,
            width: info.width,
            height: info.height,
            orientation: info
                .exif_metadata
                .as_deref()
                .map_or(Orientation::Upright, exif::orientation),
            // Four channels are decoded into their place. Rows of raw data are kept beside it.
            work: if channels == 4 { 0 } else { channels * pixels }
                + 64 * u64::from(info.width)
                + CHUNKS as u64,
        }
    }

    fn read(
        mut self: Box<Self>,
        pixels: &mut [Pixel],
        spare: &mut Vec<u8>,
    ) -> Result<(), ImageError> {
        let (colour, _) = self.reader.output_color_type();
        if colour == ColorType::Rgba {
            self.reader
                .next_frame(pixels.as_flattened_mut())
                .map_err(in_words)?;
        } else {
            let raw = grown(spare, pixels.len() * colour.samples());
            self.reader.next_frame(raw).map_err(in_words)?;
            widen(raw, colour.samples(), pixels);
        }
        // To the end: a checksum may be wrong, or the file cut, behind the last row.
        self.reader.finish().map_err(in_words)
    }
}

/// The decoder's error in words for people.
fn in_words(error: DecodingError) -> ImageError {
    match error {
        DecodingError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            ImageError::Truncated {
                format: PictureFormat::Png,
            }
        }
        other => ImageError::damaged(PictureFormat::Png, other),
    }
}
