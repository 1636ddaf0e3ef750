//! Where each tensor lies in the one flat vector, and how that vector is cut into chunks.
//!
//! The *state vector* holds all parameters, then all running statistics. Chunks are what gradients are
//! handed out, exchanged and updated in: each belongs to one layer, and a layer's backward pass can
//! finish it at once.

use crate::factors::Factored;
use std::ops::Range;

/// About how many numbers a chunk has: 64 KiB stay in the second-level cache from the moment they are
/// computed until they are updated, and a model of a few megabytes still has enough chunks to share.
pub const CHUNK: usize = 16 * 1024;

/// Whether a tensor is learned or observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Trained by the optimizer.
    Parameter,
    /// A running statistic: an average over the batches seen.
    Statistic,
}

/// How a tensor's numbers lie, against the order that PyTorch would have them in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The same.
    AsIs,
    /// A matrix whose transpose PyTorch stores: ours is `[in, out]`, theirs `[out, in]`.
    Transposed,
}

/// One named tensor of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// Its name, as in a PyTorch `state_dict`.
    pub name: String,
    /// Its shape in PyTorch's order.
    pub shape: Vec<usize>,
    /// How our numbers are ordered.
    pub order: Order,
    /// Learned or observed.
    pub role: Role,
    /// Where it lies in the state vector.
    pub range: Range<usize>,
}

/// The map of a state vector.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layout {
    /// All tensors in the order of the vector.
    pub tensors: Vec<Tensor>,
    /// Ascending, adjacent ranges that cover the vector.
    pub chunks: Vec<Range<usize>>,
    /// How many of the vector's numbers are parameters; the statistics follow.
    pub parameters: usize,
    /// The runs of chunks whose gradients are products of small factors, in the order of the vector.
    pub factored: Vec<Factored>,
}

impl Layout {
    /// Length of the state vector.
    pub fn len(&self) -> usize {
        self.chunks.last().map_or(0, |chunk| chunk.end)
    }

    /// Whether there is nothing to learn.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Appends a tensor and returns where it lies.
    pub(crate) fn push(
        &mut self,
        name: String,
        shape: Vec<usize>,
        order: Order,
        role: Role,
    ) -> Range<usize> {
        let start = self.tensors.last().map_or(0, |tensor| tensor.range.end);
        let range = start..start + shape.iter().product::<usize>();
        if role == Role::Parameter {
            self.parameters = range.end;
        }
        self.tensors.push(Tensor {
            name,
            shape,
            order,
            role,
            range: range.clone(),
        });
        range
    }

    /// Appends chunks of these lengths and returns their numbers.
    pub(crate) fn cut(&mut self, lengths: impl IntoIterator<Item = usize>) -> Range<usize> {
        let first = self.chunks.len();
        for length in lengths {
            let start = self.len();
            self.chunks.push(start..start + length);
        }
        first..self.chunks.len()
    }
}
