//! Pictures in, pixels out: decoders behind one door, and the transforms that models expect.
//!
//! The idea: a file's bytes say what they are, its header says how large it will be, and only a header within the
//! [`Limits`] gets memory. Behind the door are four formats (JPEG, PNG, WebP, BMP) and one result, RGB of 8 bits. A
//! [`Transformer`] then resizes, crops and normalises as PIL and torchvision would, and keeps its buffers from one
//! picture to the next.
//!
//! What it promises:
//! - **Bits.** The same file and the same transform give the same pixels on every machine: all arithmetic on pixels is
//!   on integers, with and without vector instructions.
//! - **No half pictures.** A file that is cut short or damaged is an [`ImageError`] that says so, never a picture with
//!   a grey half.
//! - **Bounds.** Dimensions are checked before memory is taken; [`PictureHeader::memory`] says what decoding takes at most.
//! - **No chance.** Nothing here is random.
//!
//! # How special pictures are read
//!
//! | picture | what becomes of it |
//! |---|---|
//! | empty file, text with a picture's name, other formats (GIF, TIFF, HEIC, ...) | an error that says what it is |
//! | cut short, damaged | an error |
//! | closed behind half of its data (an end marker in the middle of a JPEG) | as Pillow reads it: the rest is gray |
//! | more pixels than the limits allow | an error, from the header alone |
//! | grayscale, palette | repeated or looked up to RGB |
//! | 16 bits a channel | the upper 8 |
//! | alpha | dropped, as PIL's `convert("RGB")` does: no background is mixed in |
//! | CMYK and YCCK JPEG | taken as inverted (Adobe's way) and multiplied by black, as PIL does; profiles are ignored |
//! | EXIF orientation (JPEG, PNG, WebP) | applied, as `ImageOps.exif_transpose` does |
//! | progressive, interlaced, any subsampling | like any other |
//! | animated PNG or WebP | the first frame |
//! | arithmetic-coded, lossless or 12-bit JPEG | an error that says so |

mod decode;
mod error;
mod exif;
mod folder;
mod format;
mod formats;
mod header;
mod limits;
mod normalise;
mod orientation;
mod resample;
mod transform;
mod transformer;
mod view;

pub use decode::{Picture, decode, probe};
pub use error::ImageError;
pub use folder::{empty_class, has_ending, is_hidden, is_looked_at, names_a_picture, tolerated};
pub use format::PictureFormat;
pub use header::PictureHeader;
pub use limits::Limits;
pub use normalise::{ByteNormaliser, Normalise};
pub use orientation::Orientation;
pub use transform::{Filter, Transform};
pub use transformer::Transformer;
