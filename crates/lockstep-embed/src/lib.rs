//! Pictures become vectors: the parts, the encoder, and what each finished part promises.
//!
//! An [`EmbedRecipe`] says how a picture becomes a vector. An [`Inventory`] is the pictures of a folder, in an
//! order that depends on their names alone, cut into parts. A part is one piece of work ([`PartMaker::make`]) and one
//! Parquet file, which is there in full or not at all.
//!
//! The file carries all that is known of its part: the vectors, the pictures that could not be read with
//! their reasons, and a *fingerprint* of the recipe and of the pictures as they were listed. So a second
//! run needs no record of the first one: it looks at the files that are there, and makes those that are
//! missing or have another fingerprint. The same recipe and pictures give the same bytes, whoever makes
//! a part, and however often a run was interrupted.

mod encoding;
mod error;
mod inventory;
mod known;
mod maker;
mod model;
mod part;
mod reading;
mod recipe;
mod skipped;

pub use encoding::gpu_memory;
pub use error::EmbedError;
pub use inventory::{Inventory, ListedPicture};
pub use known::locate;
pub use maker::PartMaker;
pub use model::{EncoderKind, EncoderModel};
pub use part::{FinishedPart, PartTask, find, part_number};
pub use recipe::EmbedRecipe;
pub use skipped::{SKIPPED_FILE, SkippedPicture, check_share, write_list};
