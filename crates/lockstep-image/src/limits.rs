//! How large a picture may be. Checked against the header, before memory is taken.

use serde::{Deserialize, Serialize};

use crate::{ImageError, PictureHeader};

/// How large a picture may be before it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The most pixels in all; 100 million unless told otherwise, more than cameras take.
    pub max_pixels: u64,
    /// The most pixels across or down; 65,535 unless told otherwise, the most that a JPEG can have.
    pub max_side: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_pixels: 100_000_000,
            max_side: 65_535,
        }
    }
}

impl Limits {
    /// Refuses a picture that is too large.
    pub(crate) fn check(&self, header: &PictureHeader) -> Result<(), ImageError> {
        let PictureHeader {
            format,
            width,
            height,
            ..
        } = *header;
        if header.pixels() <= self.max_pixels && width.max(height) <= self.max_side {
            return Ok(());
        }
        let Limits {
            max_pixels,
            max_side,
        } = *self;
        Err(ImageError::TooLarge {
            format,
            width,
            height,
            max_pixels,
            max_side,
        })
    }
}
