//! BMP of Windows and OS/2: 1, 4, 8, 16, 24 and 32 bits a pixel, with palettes and masks.
//!
//! Written here because it is little: rows of pixels behind a header, from the bottom up. Alpha is dropped.

use super::OpenedPicture;
use crate::decode::Pixel;
use crate::{ImageError, Orientation, PictureFormat, PictureHeader};

/// A BMP whose headers and palette have been read.
pub(super) struct Bmp<'a> {
    width: u32,
    height: u32,
    /// Whether the first row in the file is the top one.
    top_down: bool,
    coding: Coding,
    palette: Vec<Pixel>,
    /// What follows the headers.
    data: &'a [u8],
}

/// How pixels lie in the file.
#[derive(Clone, Copy)]
enum Coding {
    /// Places in the palette, of 1, 2, 4 or 8 bits.
    Indexed(usize),
    /// Blue, green, red.
    Bytes,
    /// Red, green and blue as masks of 16 or 32 bits.
    Masks(usize, [Mask; 3]),
}

const FILE_HEADER: usize = 14;

impl<'a> Bmp<'a> {
    pub(super) fn open(bytes: &'a [u8]) -> Result<Bmp<'a>, ImageError> {
        let field = Fields { bytes };
        let start = field.long(10)? as usize;
        let size = field.long(FILE_HEADER)? as usize;
        let (width, height, bits, compression) = if size == 12 {
            (
                field.short(18)?.into(),
                field.short(20)?.into(),
                field.short(24)?,
                0,
            )
        } else {
            let compression = if size >= 20 { field.long(30)? } else { 0 };
            (
                field.long(18)?,
                field.long(22)?,
                field.short(28)?,
                compression,
            )
        };
        let top_down = height > i32::MAX as u32;
        let height = if top_down {
            height.wrapping_neg()
        } else {
            height
        };
        if width == 0 || height == 0 || width > i32::MAX as u32 {
            return Err(damaged("it has no width or no height"));
        }
        let coding = Coding::new(&field, bits, compression, size)?;
        let palette = match coding {
            Coding::Indexed(bits) => palette(&field, size, start, bits)?,
            _ => Vec::new(),
        };
        let data = bytes.get(start..).ok_or(CUT)?;
        Ok(Bmp {
            width,
            height,
            top_down,
            coding,
            palette,
            data,
        })
    }

    /// The palette's colour; one that is not there is black, as elsewhere.
    fn colour(&self, index: u8) -> Pixel {
        self.palette
            .get(usize::from(index))
            .copied()
            .unwrap_or_default()
    }

    /// The row in the picture of a row in the file.
    fn row<'p>(&self, pixels: &'p mut [Pixel], number: usize) -> &'p mut [Pixel] {
        let width = self.width as usize;
        let number = if self.top_down {
            number
        } else {
            self.height as usize - 1 - number
        };
        &mut pixels[number * width..][..width]
    }

    /// Looks the places in the palette of one row up.
    fn look_up(&self, bits: usize, raw: &[u8], row: &mut [Pixel]) {
        let per_byte = 8 / bits;
        for (pixels, &byte) in row.chunks_mut(per_byte).zip(raw) {
            for (place, pixel) in pixels.iter_mut().enumerate() {
                let index = (byte >> (8 - bits * (place + 1))) & (0xff >> (8 - bits));
                *pixel = self.colour(index);
            }
        }
    }
}

impl Coding {
    fn new(
        field: &Fields<'_>,
        bits: u16,
        compression: u32,
        size: usize,
    ) -> Result<Coding, ImageError> {
        let bits = usize::from(bits);
        let unsupported = |what: String| Err(ImageError::Unsupported { what });
        match (compression, bits) {
            (0, 1 | 2 | 4 | 8) => Ok(Coding::Indexed(bits)),
            (1, 8) | (2, 4) => unsupported("a BMP with run-length compression".to_owned()),
            (0, 24) => Ok(Coding::Bytes),
            (0, 16) => Ok(Coding::Masks(2, [Mask(0x7c00), Mask(0x03e0), Mask(0x001f)])),
            (0, 32) => Ok(Coding::Masks(
                4,
                [Mask(0xff_0000), Mask(0xff00), Mask(0xff)],
            )),
            // Inside of a long header or right behind a short one, they are at the same place.
            (3 | 6, 16 | 32) if size >= 40 => {
                let masks = [
                    Mask(field.long(54)?),
                    Mask(field.long(58)?),
                    Mask(field.long(62)?),
                ];
                match masks.iter().all(Mask::is_one_run) {
                    true => Ok(Coding::Masks(bits / 8, masks)),
                    false => Err(damaged("its colour masks have holes")),
                }
            }
            _ => unsupported(format!("a BMP of {bits} bits, compression {compression}")),
        }
    }
}

/// The colours between the headers and the pixels.
fn palette(
    field: &Fields<'_>,
    size: usize,
    start: usize,
    bits: usize,
) -> Result<Vec<Pixel>, ImageError> {
    let entry = if size == 12 { 3 } else { 4 };
    let used = if size >= 36 {
        field.long(46)? as usize
    } else {
        0
    };
    let most = 1 << bits;
    let colours = if used == 0 { most } else { used.min(most) };
    let first = FILE_HEADER.saturating_add(size);
    // A palette that would reach into the pixels is as long as there is room.
    let end = first.saturating_add(colours * entry).min(start.max(first));
    let bytes = field.bytes.get(first..end).ok_or(CUT)?;
    Ok(bytes
        .chunks_exact(entry)
        .map(|colour| [colour[2], colour[1], colour[0], 0])
        .collect())
}

impl OpenedPicture for Bmp<'_> {
    fn header(&self) -> PictureHeader {
        PictureHeader {
            format: PictureFormat::Bmp,
            width: self.width,
            height: self.height,
            orientation: Orientation::Upright,
            work: 0,
        }
    }

    fn read(self: Box<Self>, pixels: &mut [Pixel], _spare: &mut Vec<u8>) -> Result<(), ImageError> {
        let (width, height) = (self.width as usize, self.height as usize);
        let bits = match self.coding {
            Coding::Indexed(bits) => bits,
            Coding::Bytes => 24,
            Coding::Masks(bytes, _) => 8 * bytes,
        };
        // Rows begin at multiples of four bytes; of the last one the padding may be missing.
        let (length, stride) = ((width * bits).div_ceil(8), (width * bits).div_ceil(32) * 4);
        if self.data.len() < stride * (height - 1) + length {
            return Err(CUT);
        }
        for (number, raw) in self.data.chunks(stride).take(height).enumerate() {
            let row = self.row(pixels, number);
            let raw = &raw[..length];
            match self.coding {
                Coding::Masks(bytes, masks) => {
                    for (pixel, raw) in row.iter_mut().zip(raw.chunks_exact(bytes)) {
                        let value = raw
                            .iter()
                            .rev()
                            .fold(0, |value, &byte| (value << 8) | u32::from(byte));
                        let [red, green, blue] = masks.map(|mask| mask.of(value));
                        *pixel = [red, green, blue, 0];
                    }
                }
                Coding::Bytes => {
                    for (pixel, raw) in row.iter_mut().zip(raw.chunks_exact(3)) {
                        *pixel = [raw[2], raw[1], raw[0], 0];
                    }
                }
                Coding::Indexed(bits) => self.look_up(bits, raw, row),
            }
        }
        Ok(())
    }
}

/// Which bits of a pixel are one colour.
#[derive(Clone, Copy)]
struct Mask(u32);

impl Mask {
    fn is_one_run(&self) -> bool {
        let run = self.0.checked_shr(self.0.trailing_zeros()).unwrap_or(0);
        run & run.wrapping_add(1) == 0
    }

    /// The colour of a pixel, scaled to 8 bits.
    fn of(self, value: u32) -> u8 {
        match self.0.count_ones() {
            0 => 0,
            bits if bits > 8 => ((value & self.0) >> (self.0.trailing_zeros() + bits - 8)) as u8,
            bits => (((value & self.0) >> self.0.trailing_zeros()) * 255 / ((1 << bits) - 1)) as u8,
        }
    }
}

const CUT: ImageError = ImageError::Truncated {
    format: PictureFormat::Bmp,
};

fn damaged(reason: &str) -> ImageError {
    ImageError::damaged(PictureFormat::Bmp, reason)
}

/// Numbers at places in the file.
struct Fields<'a> {
    bytes: &'a [u8],
}

impl Fields<'_> {
    fn short(&self, at: usize) -> Result<u16, ImageError> {
        let bytes = self.bytes.get(at..at + 2).ok_or(CUT)?;
        Ok(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    fn long(&self, at: usize) -> Result<u32, ImageError> {
        let bytes = self.bytes.get(at..at + 4).ok_or(CUT)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }
}
