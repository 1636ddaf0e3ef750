//! How large a picture may be. Checked against the header, before memory is taken.

use serde::{Deserialize, Serialize};

use crate::{ImageError, PictureHeader};

/// How large a picture may be before it is refused. It is the memory that counts, not the pixels: phones take photos of
/// a hundred megapixels, and most of them can be read in less than what a smaller one of another kind needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The most bytes that reading a picture may take; 1 GiB unless told otherwise.
    pub max_memory: u64,
    /// The most pixels across or down; 65,535 unless told otherwise, the most that a JPEG can have.
    pub max_side: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_memory: 1 << 30,
            max_side: 65_535,
        }
    }
}

impl Limits {
    /// Refuses a picture that is too large, if reading it takes `needed` bytes.
    pub(crate) fn check(&self, header: &PictureHeader, needed: u64) -> Result<(), ImageError> {
        let (header, max_side, max_memory) = (*header, self.max_side, self.max_memory);
        if header.width.max(header.height) > max_side {
            return Err(ImageError::TooLong { header, max_side });
        }
        match needed <= max_memory {
            true => Ok(()),
            false => Err(ImageError::TooLarge {
                header,
                needed,
                max_memory,
            }),
        }
    }
}
