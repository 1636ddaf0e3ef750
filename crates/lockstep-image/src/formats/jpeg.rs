//! JPEG, by zune-jpeg: baseline and progressive, gray, YCbCr, RGB, CMYK and YCCK.
//!
//! Two things that the decoder forgives are not forgiven here, because the result would be half a picture: a file
//! without its end, and damage inside of the picture. Oddities before it (stray bytes between segments) are let pass.

mod segments;

use zune_core::bytestream::{ZByteIoError, ZCursor};
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::errors::{DecodeErrors, UnsupportedSchemes};
use zune_jpeg::{ImageInfo, JpegDecoder};

use super::{OpenedPicture, widen};
use crate::decode::{Pixel, grown};
use crate::{ImageError, Orientation, PictureFormat, PictureHeader, exif};

/// A JPEG whose header has been read.
pub(super) struct Jpeg<'a> {
    bytes: &'a [u8],
    decoder: JpegDecoder<ZCursor<&'a [u8]>>,
    header: PictureHeader,
    /// Whether the decoder writes pixels of four bytes; of RGB, CMYK and YCCK it does not, or not soundly.
    direct: bool,
}

/// The decoder's settings. Its vector instructions give the same bits as its plain code, which a test below holds.
fn options(colours: ColorSpace) -> DecoderOptions {
    // Our own limits are checked instead of the decoder's.
    let options = DecoderOptions::new_fast()
        .set_max_width(usize::MAX)
        .set_max_height(usize::MAX);
    options
        .set_strict_mode(false)
        .jpeg_set_out_colorspace(colours)
}

impl<'a> Jpeg<'a> {
    pub(super) fn open(bytes: &'a [u8]) -> Result<Jpeg<'a>, ImageError> {
        let mut decoder =
            JpegDecoder::new_with_options(ZCursor::new(bytes), options(ColorSpace::RGBA));
        decoder.decode_headers().map_err(in_words)?;
        let direct = matches!(
            decoder.input_colorspace(),
            Some(ColorSpace::YCbCr | ColorSpace::Luma)
        );
        if !direct {
            // What the header decides is decided once, so it is read again.
            decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options(ColorSpace::RGB));
            decoder.decode_headers().map_err(in_words)?;
        }
        let info = decoder.info().ok_or_else(|| damaged("it has no header"))?;
        if !matches!(info.components, 1 | 3 | 4) {
            let what = format!("a JPEG of {} components", info.components);
            return Err(ImageError::Unsupported { what });
        }
        if info.components == 3 && decoder.input_colorspace() == Some(ColorSpace::CMYK) {
            let what = "a JPEG of RGB components that are not named R, G and B".into();
            return Err(ImageError::Unsupported { what });
        }
        let header = PictureHeader {
            format: PictureFormat::Jpeg,
            width: info.width.into(),
            height: info.height.into(),
            orientation: info
                .exif_data
                .as_deref()
                .map_or(Orientation::Upright, exif::orientation),
            work: work(&info, direct, bytes),
        };
        Ok(Jpeg {
            bytes,
            decoder,
            header,
            direct,
        })
    }
}

impl OpenedPicture for Jpeg<'_> {
    fn header(&self) -> PictureHeader {
        self.header
    }

    fn read(
        mut self: Box<Self>,
        pixels: &mut [Pixel],
        spare: &mut Vec<u8>,
    ) -> Result<(), ImageError> {
        if !segments::ends(self.bytes) {
            return Err(ImageError::Truncated {
                format: PictureFormat::Jpeg,
            });
        }
        // Only from here on: what is odd in a header seldom harms the picture.
        let strict = self.decoder.options().set_strict_mode(true);
        self.decoder.set_options(strict);
        if self.direct {
            return self
                .decoder
                .decode_into(pixels.as_flattened_mut())
                .map_err(in_words);
        }
        let rgb = grown(spare, 3 * pixels.len());
        self.decoder.decode_into(rgb).map_err(in_words)?;
        widen(rgb, 3, pixels);
        Ok(())
    }
}

/// What the decoder works in: some rows, or all coefficients if they do not come in the order of the pixels.
fn work(info: &ImageInfo, direct: bool, bytes: &[u8]) -> u64 {
    // Blocks of up to 32 x 32 pixels are completed.
    let [width, height] =
        [info.width, info.height].map(|side| u64::from(side).next_multiple_of(32));
    let components = u64::from(info.components);
    let coefficients = match segments::is_one_scan(bytes, info.components) {
        true => 0,
        false => segments::coefficient_bytes(bytes).unwrap_or(2 * components * width * height),
    };
    let rgb = if direct {
        0
    } else {
        3 * u64::from(info.width) * u64::from(info.height)
    };
    coefficients + rgb + ROWS * components * width
}

/// Bytes of a component for every column of the picture: 16-bit rows of a block, before and after resampling.
const ROWS: u64 = 2 * 32 * 4;

fn damaged(reason: impl std::fmt::Display) -> ImageError {
    ImageError::damaged(PictureFormat::Jpeg, reason)
}

/// The decoder's error in words for people.
fn in_words(error: DecodeErrors) -> ImageError {
    match error {
        DecodeErrors::ExhaustedData | DecodeErrors::IoErrors(ZByteIoError::NotEnoughBytes(..)) => {
            ImageError::Truncated {
                format: PictureFormat::Jpeg,
            }
        }
        DecodeErrors::Unsupported(scheme) => {
            let kind = match scheme {
                UnsupportedSchemes::ExtendedSequentialDctArithmetic
                | UnsupportedSchemes::ProgressiveDctArithmetic
                | UnsupportedSchemes::LosslessArithmetic => "arithmetic-coded",
                UnsupportedSchemes::LosslessHuffman => "lossless",
                _ => "extended",
            };
            ImageError::Unsupported {
                what: format!("{kind} JPEG"),
            }
        }
        DecodeErrors::SofError(reason) if reason.contains("8-bit") => ImageError::Unsupported {
            what: "JPEG of more than 8 bits".into(),
        },
        DecodeErrors::ZeroError => damaged("it has no width or no height"),
        DecodeErrors::Format(reason)
        | DecodeErrors::HuffmanDecode(reason)
        | DecodeErrors::DqtError(reason)
        | DecodeErrors::SosError(reason)
        | DecodeErrors::SofError(reason)
        | DecodeErrors::MCUError(reason) => damaged(reason),
        DecodeErrors::FormatStatic(reason) => damaged(reason),
        other => damaged(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pixels of a picture with or without vector instructions, or nothing if it is damaged.
    fn decoded(bytes: &[u8], colours: ColorSpace, vectors: bool) -> Option<Vec<u8>> {
        let options = options(colours)
            .set_use_unsafe(vectors)
            .set_strict_mode(true);
        JpegDecoder::new_with_options(ZCursor::new(bytes), options)
            .decode()
            .ok()
    }

    #[test]
    fn vector_instructions_do_not_change_a_bit() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pictures");
        let mut compared = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "jpg") {
                continue;
            }
            let whole = std::fs::read(&path).unwrap();
            let colours = if Jpeg::open(&whole).unwrap().direct {
                ColorSpace::RGBA
            } else {
                ColorSpace::RGB
            };
            assert!(
                decoded(&whole, colours, true).is_some(),
                "{}",
                path.display()
            );
            // Other coefficients than an encoder would write, by changing bytes of the data.
            for change in 0..40 {
                let mut bytes = whole.clone();
                if change > 0 {
                    let place = bytes.len() - 3 - change * 7 % (bytes.len() / 2);
                    bytes[place] = bytes[place].wrapping_add(change as u8) & 0xfe;
                }
                let (vectors, plain) = (
                    decoded(&bytes, colours, true),
                    decoded(&bytes, colours, false),
                );
                assert!(vectors == plain, "{}, change {change}", path.display());
                compared += usize::from(plain.is_some());
            }
        }
        assert!(compared > 300, "{compared} pictures were compared");
    }
}
