//! Why a file did not become a picture.

use crate::{PictureFormat, PictureHeader};

/// Why a file did not become a picture, in a sentence; which file it was is the caller's to say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// No bytes at all.
    #[error("the file is empty")]
    Empty,
    /// The bytes are of no picture format that is known here.
    #[error("not a picture: it begins with {begins}; JPEG, PNG, WebP and BMP are read")]
    NotAnImage {
        /// The first bytes, as text where they are text.
        begins: String,
    },
    /// A picture, of a kind that is not read.
    #[error("{what} is not read; save it as an ordinary JPEG, PNG, WebP or BMP")]
    Unsupported {
        /// What it is: "GIF", "arithmetic-coded JPEG".
        what: String,
    },
    /// A side is longer than the limits allow.
    #[error("{header} is over the limit of {max_side} a side")]
    TooLong {
        /// What the file says of its picture.
        header: PictureHeader,
        /// The limit of a side.
        max_side: u32,
    },
    /// Reading it takes more memory than the limits allow.
    #[error(
        "{header} takes {} MiB to read, and it may take {} MiB; give it more memory",
        needed.div_ceil(1 << 20),
        max_memory >> 20
    )]
    TooLarge {
        /// What the file says of its picture.
        header: PictureHeader,
        /// Bytes that it takes.
        needed: u64,
        /// Bytes that it may take.
        max_memory: u64,
    },
    /// The file ends before its picture does.
    #[error("the {format} is cut short: the file ends before the picture does")]
    Truncated {
        /// What the bytes are.
        format: PictureFormat,
    },
    /// The bytes contradict themselves.
    #[error("the {format} is damaged: {reason}")]
    Damaged {
        /// What the bytes are.
        format: PictureFormat,
        /// What the decoder stumbled over.
        reason: String,
    },
    /// The transform or the buffer that was passed cannot be, whatever the picture.
    #[error("{0}")]
    Transform(String),
}

impl ImageError {
    /// A short name of the kind of error, for counting.
    pub fn kind(&self) -> &'static str {
        match self {
            ImageError::Empty => "empty",
            ImageError::NotAnImage { .. } => "not-an-image",
            ImageError::Unsupported { .. } => "unsupported",
            ImageError::TooLong { .. } | ImageError::TooLarge { .. } => "too-large",
            ImageError::Truncated { .. } => "truncated",
            ImageError::Damaged { .. } => "damaged",
            ImageError::Transform(_) => "transform",
        }
    }

    /// Damage, in the words of the decoder that found it.
    pub(crate) fn damaged(format: PictureFormat, reason: impl std::fmt::Display) -> ImageError {
        let reason = reason.to_string().trim_end().to_owned();
        ImageError::Damaged { format, reason }
    }
}
