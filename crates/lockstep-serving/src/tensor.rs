//! Numbers of one shape: what the Open Inference Protocol calls a tensor.

/// Rows of numbers, all of one shape.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tensor {
    /// The number of rows, then the shape of each.
    pub(crate) shape: Vec<usize>,
    /// The numbers, row after row, as many as the shape says.
    pub(crate) values: Vec<f64>,
}

impl Tensor {
    /// How many rows it has.
    pub(crate) fn rows(&self) -> usize {
        self.shape.first().copied().unwrap_or(0)
    }
}
