//! What a model learns from: files in, batches out.
//!
//! A [`Dataset`] is opened from a [`Source`]: a pair of [IDX files](idx), the binary files of CIFAR, tables
//! in Parquet or CSV, a folder of [`Pictures`], or a [known] set that is brought from its public place when it
//! is missing. What is read from files is decoded once, streaming, into a cache that every worker of a
//! machine maps and shares, so opening it again costs nothing and takes no memory of its own. Which samples a step sees is a function of the seed and the epoch alone
//! ([`EpochOrder`], [`lane_rows`]); [`Dataset::gather`] turns them into the rows of a batch, with the
//! same bits on every machine. Training may see each image a little differently in every step
//! ([`Augmenter`]), which is a function of the seed, the step and the sample. A [`Frame`] is a table as it is, whose
//! columns are handed to scripts. Samples of a request come from no file ([`SampleValues`]).
//!
//! Images are rows of pixels, line by line, the channels of a pixel beside each other.

mod augment;
mod builder;
mod checksums;
mod cifar;
mod cifar_folder;
mod classes;
mod columns;
mod content;
mod convert;
mod dataset;
mod decoded;
mod encoding;
mod error;
mod example;
mod file;
mod frame;
mod gather;
pub mod idx;
mod idx_pair;
mod in_memory;
pub mod known;
mod labels;
mod layout;
mod leaks;
mod mapped;
mod order;
mod part;
mod picture_changes;
mod pictures;
mod prefetch;
mod scale;
mod source;
mod split;
mod stamp;
mod stored_images;
mod suspects;
mod sweep;
mod table;
mod target;
#[cfg(test)]
mod testing;
mod unpacked;

pub use augment::{Augment, Augmenter, RandomBlocks, SeenImage};
pub use cifar_folder::CifarSplit;
pub use classes::{UnseenClass, UnseenClasses};
pub use columns::{TableColumn, TableSchema};
pub use dataset::{Dataset, DecodedSet, SkippedFile, StoredElement};
pub use encoding::{EmbeddedColumn, Encoding, HotSlot, ScaledNumber};
pub use error::DataError;
pub use frame::{DecodedFrame, Frame, FrameBatch, FramePart, FrameSource, StoredColumn};
pub use gather::{Normalisation, Normaliser};
pub use in_memory::SampleValues;
pub use leaks::leak_note;
pub use lockstep_table::{
    Cell, CellForm, ColumnKind, ColumnNames, ColumnType, CsvFormat, FrameCell, FrameElement,
    InputColumn, KeptColumn, KeptKind, LeftOut, RowReader, TableError, TableFormat, TextEncoding,
    TimeForm, WholeNumbers,
};
pub use order::{EpochOrder, lane_rows, split, stratified_split};
pub use part::PartSource;
pub use picture_changes::{PictureChanges, PictureView};
pub use pictures::{PictureClass, PictureSurvey, Pictures};
pub use source::{Source, TableSource, labels_beside};
pub use split::{Fold, SplitBy, SplitPart, SplitRule};
pub use stored_images::{StoredImages, StoredValues};
pub use suspects::{Suspect, Suspicion, suspects};
pub use target::{TargetKind, TargetScale};
