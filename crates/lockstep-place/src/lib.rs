//! Files and folders by one name each, on this machine or in an object store.
//!
//! A [`Place`] is a path or a URL (`s3://`, `az://`, `abfs://`, `abfss://`, `gs://`, `http://`, `https://`)
//! with what is needed to get there. What can be done with one is the same everywhere, and so are the
//! promises:
//!
//! - **Whole or not at all.** A read gives every byte of one version of the object, or an error; a write
//!   is seen in full or not.
//! - **One of many wins.** [`Place::create_new`] and [`Place::replace_if`] change what is there only if it is
//!   what the caller thinks it is, in one step.
//! - **It ends.** Every operation has a deadline, and what may pass is tried again a bounded number of times.
//! - **No way out.** [`Place::join`] leads down only.
//! - **No secrets.** They come from the environment, and no error, `Debug` or `Display` shows one.
//!
//! Servers that keep no files are asked with [`http`].
//!
//! The functions block; a small runtime of this crate's own does the waiting. Call them from plain threads.
//!
//! ```
//! # fn main() -> Result<(), lockstep_place::PlaceError> {
//! use lockstep_place::{Access, Place};
//!
//! let folder = tempfile::tempdir().unwrap();
//! let store = Place::parse(folder.path().to_str().unwrap(), &Access::default())?;
//! store.join("parts/0.parquet")?.write(b"PAR1")?;
//! let files = store.list()?;
//! assert_eq!(files[0].path, "parts/0.parquet");
//! assert_eq!(store.join(&files[0].path)?.read_range(1..3)?, b"AR");
//! # Ok(())
//! # }
//! ```

mod access;
mod change;
mod copy;
mod error;
pub mod http;
mod local;
mod name;
mod package;
mod place;
pub mod portable;
mod remote;
mod variables;
mod writer;

pub use access::{Access, Endpoint, EndpointError};
pub use change::Version;
pub use copy::LocalCopy;
pub use error::{Passing, PlaceError, is_passing};
pub use package::Package;
pub use place::{FileEntry, Place};
pub use variables::Variables;
pub use writer::PlaceWriter;
