//! The bottom of everything that is kept on a disk.
//!
//! A file is there in full or not at all ([`AtomicFile`]), a lock ends with its process
//! ([`FileLock`]), what can be made again lies apart from what cannot ([`CacheDir`]), and what is gone
//! soon lies where nobody else can reach it ([`private_folder`]). Beside
//! them: names that never collide ([`random_letters`]), hashes ([`sha256`], [`sha256_of_file`]) and
//! how people write bytes ([`hex`]).

mod atomic;
pub mod beneath;
mod cache;
mod cache_items;
mod error;
mod hash;
pub mod hex;
mod kind;
mod leftover;
mod letters;
mod lock;
pub mod log;
mod operations;
mod private;
mod restricted;

pub use atomic::{AtomicFile, write_atomic};
pub use cache::CacheDir;
pub use cache_items::{CacheItem, cache_limit, surplus};
pub use error::FsError;
pub use hash::{Hasher, sha256, sha256_of, sha256_of_file};
pub use kind::file_kind;
pub use leftover::{ABANDONED, is_older, remove_leftover};
pub use letters::{is_random_letter, random_letters};
pub use lock::FileLock;
pub use operations::{create_folder, remove_file, remove_folder, sync_folder};
pub use private::{PrivateFolder, private_folder};
pub use restricted::restricted_folder;
