//! What a model learns from: files in, batches out.
//!
//! A [`Dataset`] is opened from a [`Source`]: a pair of [IDX files](idx), or a [known] set that is
//! brought from its public place when it is missing. What is read from files is decoded once into a
//! cache that every worker of a machine maps and shares, so opening it again costs nothing and takes
//! no memory of its own. Which samples a step sees is a function of the seed and the epoch alone
//! ([`EpochOrder`], [`lane_rows`]); [`Dataset::gather`] turns them into the rows of a batch, with the
//! same bits on every machine.

mod convert;
mod dataset;
mod decoded;
mod error;
mod file;
mod gather;
mod hex;
pub mod idx;
pub mod known;
mod mapped;
mod order;
mod prefetch;
mod source;
mod sweep;
#[cfg(test)]
mod testing;
mod unpacked;

pub use dataset::{Dataset, Element};
pub use error::DataError;
pub use gather::Normaliser;
pub use order::{EpochOrder, lane_rows, split};
pub use source::Source;
