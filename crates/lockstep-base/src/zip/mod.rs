//! ZIP archives that are not trusted: their lists of contents, and how they are unpacked.

mod content;
mod list;
mod unpack;

pub use list::{Entry, entries, is_archive};
pub use unpack::{Limits, UnpackError, unpack, unpack_file};
