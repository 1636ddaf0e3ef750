//! Named tensors in files: safetensors, and PyTorch's own.
//!
//! [`TensorFile::open`] tells the format by the file's first bytes, maps the file, and finds out what is
//! in it without reading the numbers. Everything that a file says about itself is checked there: a
//! [`TensorFile`] that opens gives every one of its tensors, and none is larger than its file. PyTorch's
//! files are Python pickles; they are *read*, never executed, and a file that needs more than plain
//! tensors is refused by the name of what it needs.

mod element;
mod error;
mod file;
mod folder;
mod safe;
mod torch;

pub use element::Element;
pub use error::TensorError;
pub use file::TensorFile;
