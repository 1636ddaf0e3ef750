//! What can be wrong with data, with the file and the sample where it is.

use crate::file::{printable, shown};
use lockstep_base::fs::FsError;
use lockstep_place::PlaceError;
use lockstep_table::TableError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Data could not be had, or are not what they should be.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DataError {
    /// There is no such file.
    #[error("{} does not exist", shown(path))]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// What is there is not a file that can be read from its beginning to its end.
    #[error("{} is {kind}, not a regular file", shown(path))]
    NotAFile {
        /// What was given as a file.
        path: PathBuf,
        /// What it is, such as `a folder`.
        kind: &'static str,
    },
    /// What was decoded before is no longer there.
    #[error(
        "the decoded copy {} of {set} is gone or was replaced while it was in use",
        shown(path)
    )]
    DecodedGone {
        /// The set.
        set: String,
        /// The decoded file.
        path: PathBuf,
    },
    /// A batch of a table is larger than its readers can count.
    #[error(
        "the column `{column}` takes more than 2 GiB in a batch of {rows} rows; ask for smaller batches"
    )]
    LargeCells {
        /// The column.
        column: String,
        /// Rows of the batch.
        rows: usize,
    },
    /// The file system failed.
    #[error("cannot {action} {}: {source}", shown(path))]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// What it was tried on.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The file does not begin as an IDX file does.
    #[error(
        "{} is not an IDX file: it begins with {found:02x?}, where an IDX file has two zeros, its \
         element type (8, 9, b, c, d or e) and its number of dimensions (1 or more)",
        shown(path)
    )]
    NotIdx {
        /// The file.
        path: PathBuf,
        /// Its first four bytes.
        found: [u8; 4],
    },
    /// The header promises more than the file can hold, however well it is compressed.
    #[error(
        "{} is damaged: its header declares {} elements, more than its {stored} bytes can hold",
        shown(path),
        times(dims)
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The dimensions that the header declares.
        dims: Vec<usize>,
        /// The size of the file.
        stored: u64,
    },
    /// Samples with several classes each.
    #[error(
        "{place}: a sample has one class, but `{column}` is a second column of them; several are labels that are 0 \
         or 1 each, or numbers"
    )]
    SeveralClasses {
        /// The table.
        place: String,
        /// The second column.
        column: String,
    },
    /// Columns of what has none.
    #[error("{} cannot be kept: the samples are no rows of a table", columns.join(", "))]
    NoTable {
        /// The columns.
        columns: Vec<String>,
    },
    /// A label that is neither there nor not.
    #[error(
        "{place}, row {row}: the column `{column}` holds {found}; labels are 0 or 1, false or true"
    )]
    NoLabel {
        /// The table.
        place: String,
        /// The row, counted from 0 over all files.
        row: usize,
        /// The column.
        column: String,
        /// What it holds.
        found: f32,
    },
    /// The data end before they should.
    #[error(
        "{} is truncated: expected {expected} bytes, found {found}",
        shown(path)
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Bytes that it should have, decoded.
        expected: u64,
        /// Bytes that it has, decoded.
        found: u64,
    },
    /// The last record of a file is not whole.
    #[error(
        "{} is truncated: its record {record} has {found} of {size} bytes",
        shown(path)
    )]
    CutRecord {
        /// The file.
        path: PathBuf,
        /// The record's index, counted from 0.
        record: u64,
        /// Bytes that are there of it.
        found: usize,
        /// Bytes of a record.
        size: usize,
    },
    /// The data go on after their end.
    #[error(
        "{} is damaged: more bytes follow the {expected} that it should have",
        shown(path)
    )]
    Trailing {
        /// The file.
        path: PathBuf,
        /// Bytes that it should have, decoded.
        expected: u64,
    },
    /// The compressed data are damaged.
    #[error(
        "{} is damaged: corrupt gzip data after {decoded} decoded bytes: {reason}",
        shown(path)
    )]
    Gzip {
        /// The file.
        path: PathBuf,
        /// Bytes that could be decoded.
        decoded: u64,
        /// What the decoder says.
        reason: String,
    },
    /// The file can be read, but not as what it is named for.
    #[error("{} cannot be used as {role}: {reason}", shown(path))]
    Unfit {
        /// The file.
        path: PathBuf,
        /// What it was to be, such as `labels`.
        role: &'static str,
        /// What it has, and what would be right.
        reason: String,
    },
    /// A value is NaN or infinite.
    #[error(
        "{}: sample {sample} holds {value}; every value must be a finite number",
        shown(path)
    )]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// The sample's index, counted from 0.
        sample: u64,
        /// The value.
        value: f64,
    },
    /// A label names no class.
    #[error(
        "{}: the label of sample {sample} is {label}; labels must be in 0..{classes}",
        shown(path)
    )]
    Label {
        /// The file.
        path: PathBuf,
        /// The sample's index, counted from 0.
        sample: u64,
        /// The label.
        label: i64,
        /// The number of classes.
        classes: u64,
    },
    /// The two files of a set are not of the same set.
    #[error(
        "{} has {images_count} images, but {} has {labels_count} labels: there must be one for each",
        shown(images),
        shown(labels)
    )]
    CountMismatch {
        /// The file of images.
        images: PathBuf,
        /// How many it has.
        images_count: usize,
        /// The file of labels.
        labels: PathBuf,
        /// How many it has.
        labels_count: usize,
    },
    /// No file of labels was given, and none lies where it is looked for.
    #[error(
        "no labels are given for {}, and {reason}; give both files: {{ images = …, labels = … }}",
        shown(images)
    )]
    NoLabels {
        /// The file of images.
        images: PathBuf,
        /// Where they were looked for.
        reason: String,
    },
    /// The folder is none of those that CIFAR's archives unpack to.
    #[error(
        "{} is not a folder of CIFAR-10's or CIFAR-100's binary files: {reason}",
        shown(folder)
    )]
    NotCifar {
        /// What was given as such a folder.
        folder: PathBuf,
        /// What it is instead, or lacks.
        reason: &'static str,
    },
    /// A folder of CIFAR's was given where a part of it was to be.
    #[error(
        "{} is a folder of CIFAR's binary files: say which part of it, as in {{ cifar = …, split = \"train\" }}",
        shown(folder)
    )]
    SplitNeeded {
        /// The folder.
        folder: PathBuf,
    },
    /// A set cannot be used together with the training set.
    #[error("{set} does not fit the training set {train}: {reason}")]
    Misfit {
        /// The set, by its name or its file of images.
        set: String,
        /// The training set.
        train: String,
        /// What differs.
        reason: String,
    },
    /// A set that cannot be parted as it should be.
    #[error("{set} cannot be split: {reason}")]
    Split {
        /// The set.
        set: String,
        /// Why.
        reason: String,
    },
    /// A setting that does not fit the data.
    #[error("the {setting} cannot be used: {reason}")]
    Setting {
        /// Which: the normalisation, the augmentation or the transform.
        setting: &'static str,
        /// Why.
        reason: String,
    },
    /// A place could not be read.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A table could not be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A set without a sample.
    #[error("{place} holds no samples: {reason}")]
    NoSamples {
        /// The file or folder.
        place: String,
        /// What was looked for.
        reason: &'static str,
    },
    /// A label is not a number, where nearly all others are decimals.
    #[error(
        "{path}: the label of row {row} is `{found}`, which is not a number, though nearly all labels are decimals; correct it, or say \
         train.loss = \"cross-entropy\" (for trees, a model.objective of classes) if each label is a class"
    )]
    NoNumber {
        /// Where the sample lies.
        path: String,
        /// Its row, counted from 1 without the first line.
        row: u64,
        /// The label.
        found: String,
    },
    /// More classes than any model would have.
    #[error(
        "{path}: `{class}` would be class number {most}, and there may be {most} at most; is this a column of labels? Numbers to predict need train.loss = \"mse\""
    )]
    TooManyClasses {
        /// Where the sample lies.
        path: String,
        /// Its class.
        class: String,
        /// How many there may be.
        most: u32,
    },
    /// A set has classes that the training set does not have.
    #[error(
        "{set} has {}, which the training set does not have, such as {first}",
        unseen(classes)
    )]
    UnseenClasses {
        /// The set.
        set: String,
        /// The classes.
        classes: Vec<String>,
        /// A sample of the first of them.
        first: String,
    },
    /// A picture that lies in no folder of a class.
    #[error(
        "{folder} holds {path} itself: pictures must lie in folders within it, whose names are their classes"
    )]
    NoClass {
        /// The folder of the set.
        folder: String,
        /// The picture.
        path: String,
    },
    /// A folder of a class without a picture.
    #[error(
        "the folder of the class `{class}` in {folder} has no picture in it (.jpg, .png, .webp, .bmp); put some there, \
         or remove it"
    )]
    EmptyClass {
        /// The folder of the set.
        folder: String,
        /// The class.
        class: String,
    },
    /// Too many pictures could not be read.
    #[error(
        "{bad} of the first {seen} pictures in {folder} cannot be read, of {total} in all, and max_bad = {max_bad} \
         allows {allowed}; the first is {path}: {reason}"
    )]
    TooManyBad {
        /// The folder of the set.
        folder: String,
        /// How many could not be read.
        bad: usize,
        /// How many were tried.
        seen: usize,
        /// How many there are.
        total: usize,
        /// The share that may be unreadable.
        max_bad: f64,
        /// How many that is.
        allowed: usize,
        /// The first of them.
        path: String,
        /// Why it could not be read.
        reason: String,
    },
    /// There is no known data set, or no split, of this name.
    #[error("there is no known data set `{name}`; known are {known}")]
    Unknown {
        /// The name as given, with its split.
        name: String,
        /// All that would be right.
        known: String,
    },
    /// The file has the right form, but it is not the known file.
    #[error(
        "{} is not the published file: its decoded content has the SHA-256 {found} instead of {expected}",
        shown(path)
    )]
    Hash {
        /// The file.
        path: PathBuf,
        /// The published hash.
        expected: String,
        /// Its hash.
        found: String,
    },
    /// No way led to a known data set.
    #[error(
        "cannot bring the data set {name}; put its files ({files}) into {} by hand, or mend one of \
         the ways that were tried:{}",
        shown(folder),
        listed(attempts)
    )]
    Fetch {
        /// The data set.
        name: String,
        /// The names of its files.
        files: String,
        /// Where its files belong.
        folder: PathBuf,
        /// Each way with its failure.
        attempts: Vec<String>,
    },
    /// The cache cannot be used.
    #[error(transparent)]
    Store(#[from] FsError),
}

impl DataError {
    /// For `map_err`: the failure of `action` on `path`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl Fn(io::Error) -> DataError {
        move |source| match source.kind() {
            io::ErrorKind::NotFound => DataError::Missing {
                path: path.to_owned(),
            },
            _ => DataError::Io {
                action,
                path: path.to_owned(),
                source,
            },
        }
    }
}

/// `60000x28x28`.
fn times(dims: &[usize]) -> String {
    dims.iter()
        .map(usize::to_string)
        .collect::<Vec<_>>()
        .join("x")
}

/// One line for each attempt.
fn listed(attempts: &[String]) -> String {
    attempts
        .iter()
        .map(|attempt| format!("\n  - {attempt}"))
        .collect()
}

/// `the class husky`, `the classes husky, pug and 3 more`.
fn unseen(classes: &[String]) -> String {
    const LISTED: usize = 5;
    let listed: Vec<_> = classes
        .iter()
        .take(LISTED)
        .map(|class| format!("`{}`", printable(class)))
        .collect();
    let listed = listed.join(", ");
    match classes.len() {
        1 => format!("the class {listed}"),
        count if count > LISTED => format!("the classes {listed} and {} more", count - LISTED),
        _ => format!("the classes {listed}"),
    }
}
