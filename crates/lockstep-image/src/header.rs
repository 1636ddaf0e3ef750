//! What a file says of its picture before the pixels.

use std::fmt;

use crate::{Orientation, PictureFormat};

/// What a file says of its picture before the pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureHeader {
    /// What the bytes are.
    pub format: PictureFormat,
    /// Pixels across, as they are stored.
    pub width: u32,
    /// Pixels down, as they are stored.
    pub height: u32,
    /// How the stored pixels are to be turned.
    pub orientation: Orientation,
    /// Bytes that the decoder works in at most, beside those of the result.
    pub(crate) work: u64,
}

impl fmt::Display for PictureHeader {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (width, height) = (self.width, self.height);
        write!(out, "a {} of {width} x {height} pixels", self.format)
    }
}

impl PictureHeader {
    /// All pixels of the picture.
    pub fn pixels(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// Width and height after turning.
    pub fn upright(&self) -> (u32, u32) {
        if self.orientation.swaps_sides() {
            (self.height, self.width)
        } else {
            (self.width, self.height)
        }
    }

    /// The most bytes that decoding this picture takes: its pixels, four bytes each, and what the decoder works in, the file's own
    /// bytes not. A WebP that no encoder wrote can take more before it is refused: a lossy one 16 MiB for data
    /// that is not there, a lossless one up to 1,024 times its length for tables.
    pub fn memory(&self) -> u64 {
        let pictures = if self.orientation == Orientation::Upright {
            1
        } else {
            2
        };
        4 * self.pixels() * pictures + self.work + TABLES
    }
}

/// What a decoder takes for its tables and rows, whatever the picture.
const TABLES: u64 = 1 << 20;
