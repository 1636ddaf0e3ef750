//! What a request brings, whichever protocol it came by, before it is known what the model takes.

use crate::json::Json;
use crate::tensor::Tensor;

/// What a request asks.
#[derive(Debug, PartialEq)]
pub(crate) struct Asked {
    /// Its rows.
    pub(crate) content: Content,
    /// Whether the probabilities of all classes are wanted.
    pub(crate) probabilities: bool,
}

/// The rows of a request.
#[derive(Debug, PartialEq)]
pub(crate) enum Content {
    /// Rows whose values are in the order of these columns.
    Table {
        /// The names of the columns.
        columns: Vec<String>,
        /// Lists, if all is well.
        rows: Vec<Json>,
    },
    /// Columns, each a list with a value for every row, if all is well.
    Columns(Vec<(String, Json)>),
    /// Rows by themselves: lists, objects with a value for each column, or pictures.
    Rows(Vec<Json>),
    /// Rows of numbers, all of one shape.
    Tensor(Tensor),
    /// The files of pictures.
    Pictures(Vec<Vec<u8>>),
}

impl Content {
    /// How many rows there are. Of columns that differ in length, those of the longest.
    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::Table { rows, .. } | Self::Rows(rows) => rows.len(),
            Self::Columns(columns) => {
                let lengths = columns.iter().filter_map(|(_, column)| column.len());
                lengths.max().unwrap_or(0)
            }
            Self::Tensor(tensor) => tensor.rows(),
            Self::Pictures(pictures) => pictures.len(),
        }
    }
}
