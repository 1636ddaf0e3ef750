//! Where each tensor lies in the one flat vector, and how that vector is cut into chunks.
//!
//! The *state vector* holds all parameters, then all running statistics. Chunks are what gradients are
//! handed out, exchanged and updated in: each belongs to one layer, and a layer's backward pass can
//! finish it at once.

use crate::factors::{Factored, PANEL};
use std::ops::Range;

/// About how many numbers a chunk has: 64 KiB stay in the second-level cache from the moment they are
/// computed until they are updated, and a model of a few megabytes still has enough chunks to share.
pub const CHUNK: usize = 16 * 1024;

/// Which version of the layout this is: another one has the same numbers elsewhere in the state vector.
pub const LAYOUT_VERSION: u32 = 2;

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
pub enum NumberOrder {
    /// The same.
    AsIs,
    /// A matrix: theirs is `[out, in]`, ours `[in, out]` in panels of [`PANEL`] columns, one after the
    /// other.
    Panels,
    /// A convolution's kernels: ours are `[height, width, in, out]`, theirs `[out, in, height, width]`.
    Convolution,
}

/// One named tensor of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// Its name, as in a PyTorch `state_dict`.
    pub name: String,
    /// Its shape in PyTorch's order.
    pub shape: Vec<usize>,
    /// How our numbers are ordered.
    pub order: NumberOrder,
    /// Learned or observed.
    pub role: Role,
    /// Where it lies in the state vector.
    pub range: Range<usize>,
}

impl Tensor {
    /// Its numbers in PyTorch's order, given those in ours.
    ///
    /// # Panics
    /// When there are not as many as the tensor has.
    pub fn to_torch<T: Copy + Default>(&self, ours: &[T]) -> Vec<T> {
        let mut theirs = vec![T::default(); ours.len()];
        self.pairs(ours.len(), |i, j| theirs[j] = ours[i]);
        theirs
    }

    /// Its numbers in our order, given those in PyTorch's.
    ///
    /// # Panics
    /// When there are not as many as the tensor has.
    pub fn from_torch<T: Copy + Default>(&self, theirs: &[T]) -> Vec<T> {
        let mut ours = vec![T::default(); theirs.len()];
        self.pairs(theirs.len(), |i, j| ours[i] = theirs[j]);
        ours
    }

    /// Its numbers in our order, given as they are drawn at first: those of a matrix input by input, so
    /// that initial weights do not depend on panels.
    pub(crate) fn arrange_drawn(&self, drawn: Vec<f32>) -> Vec<f32> {
        if self.order != NumberOrder::Panels {
            return drawn;
        }
        let mut ours = vec![0.0; drawn.len()];
        let outputs = self.shape[0];
        for (i, x) in drawn.into_iter().enumerate() {
            ours[self.panel_place(i / outputs, i % outputs)] = x;
        }
        ours
    }

    /// Where a matrix in panels has the weight of an input and an output.
    fn panel_place(&self, input: usize, output: usize) -> usize {
        let [outputs, inputs] = [self.shape[0], self.shape[1]];
        let first = output / PANEL * PANEL;
        let width = PANEL.min(outputs - first);
        first * inputs + input * width + output - first
    }

    /// Calls `pair` with the place of every number in our order and in PyTorch's.
    fn pairs(&self, len: usize, mut pair: impl FnMut(usize, usize)) {
        assert_eq!(len, self.range.len(), "numbers of {}", self.name);
        if self.order == NumberOrder::AsIs {
            return (0..len).for_each(|i| pair(i, i));
        }
        // Of kernels, the first two dimensions come first in theirs and last, swapped, in ours.
        let [outputs, inputs] = [self.shape[0], self.shape[1]];
        let places: usize = self.shape[2..].iter().product();
        for output in 0..outputs {
            for input in 0..inputs {
                for place in 0..places {
                    let ours = match self.order {
                        NumberOrder::Panels => self.panel_place(input, output),
                        _ => (place * inputs + input) * outputs + output,
                    };
                    pair(ours, (output * inputs + input) * places + place);
                }
            }
        }
    }
}

/// The map of a state vector.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Layout {
    /// All tensors in the order of the vector.
    pub tensors: Vec<Tensor>,
    /// Ascending, adjacent ranges that cover the vector.
    pub chunks: Vec<Range<usize>>,
    /// The part of the learning rate that each chunk learns with. A chunk of 0 is frozen: it never changes, running
    /// statistics included.
    pub rates: Vec<f32>,
    /// How many of the vector's numbers are parameters; the statistics follow.
    pub parameters: usize,
    /// The runs of chunks whose gradients are products of small factors, in the order of the vector.
    pub factored: Vec<Factored>,
    /// Which of these reads the batch itself, if the network begins with a dense layer and goes on: its
    /// output can be computed by whoever has its weights.
    pub first_dense: Option<usize>,
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

    /// Whether a chunk never changes.
    pub fn is_frozen(&self, chunk: usize) -> bool {
        self.rates[chunk] == 0.0
    }

    /// Whether any chunk never changes.
    pub fn has_frozen(&self) -> bool {
        self.rates.contains(&0.0)
    }

    /// The ranges of all chunks that may change, as few as possible, in their order.
    pub fn trained(&self) -> Vec<Range<usize>> {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for (chunk, range) in self.chunks.iter().enumerate() {
            match ranges.last_mut() {
                _ if self.is_frozen(chunk) => {}
                Some(last) if last.end == range.start => last.end = range.end,
                _ => ranges.push(range.clone()),
            }
        }
        ranges
    }

    /// Appends a tensor and returns where it lies.
    pub(crate) fn push(
        &mut self,
        name: String,
        shape: Vec<usize>,
        order: NumberOrder,
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

    /// Appends the scale and the shift of a normalisation of so many features, and the one chunk that both are.
    pub(crate) fn push_norm(&mut self, name: &str, features: usize) -> [Range<usize>; 3] {
        let [scale, shift] = ["weight", "bias"].map(|part| {
            let name = format!("{name}.{part}");
            self.push(name, vec![features], NumberOrder::AsIs, Role::Parameter)
        });
        [scale, shift, self.cut([2 * features])]
    }

    /// Appends chunks of these lengths and returns their numbers.
    pub(crate) fn cut(&mut self, lengths: impl IntoIterator<Item = usize>) -> Range<usize> {
        let first = self.chunks.len();
        for length in lengths {
            let start = self.len();
            self.chunks.push(start..start + length);
            self.rates.push(1.0);
        }
        first..self.chunks.len()
    }

    /// Appends chunks of whole rows of a matrix, the last of which also has the bias behind it. Returns their numbers,
    /// and how many rows a chunk has.
    pub(crate) fn cut_rows(
        &mut self,
        rows: usize,
        columns: usize,
        bias: Option<&Range<usize>>,
    ) -> (Range<usize>, usize) {
        let rows_per_chunk = (CHUNK / columns).clamp(1, rows);
        let count = rows.div_ceil(rows_per_chunk);
        let chunks = self.cut((0..count).map(|i| {
            let weights = rows_per_chunk.min(rows - i * rows_per_chunk) * columns;
            match bias {
                Some(bias) if i + 1 == count => weights + bias.len(),
                _ => weights,
            }
        }));
        (chunks, rows_per_chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(shape: &[usize], order: NumberOrder) -> Tensor {
        Tensor {
            name: "t".to_owned(),
            shape: shape.to_vec(),
            order,
            role: Role::Parameter,
            range: 5..5 + shape.iter().product::<usize>(),
        }
    }

    #[test]
    fn numbers_go_to_pytorchs_order_and_back() {
        let ours: Vec<f32> = (0..2 * 3 * 4 * 5).map(|x| x as f32).collect();
        let kernels = tensor(&[5, 4, 2, 3], NumberOrder::Convolution);
        let theirs = kernels.to_torch(&ours);
        // Output 1, input 2, row 1, column 0.
        assert_eq!(theirs[((4 + 2) * 2 + 1) * 3], ours[(3 * 4 + 2) * 5 + 1]);
        assert_eq!(kernels.from_torch(&theirs), ours);
        let matrix = tensor(&[2, 3], NumberOrder::Panels);
        let theirs = matrix.to_torch(&ours[..6]);
        assert_eq!(theirs, [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
        assert_eq!(matrix.from_torch(&theirs), ours[..6]);
        // Two panels, the second of 8 columns.
        let matrix = tensor(&[PANEL + 8, 3], NumberOrder::Panels);
        let theirs = matrix.to_torch(&ours);
        assert_eq!(theirs[3 * PANEL + 1], ours[3 * PANEL + 8]);
        assert_eq!(matrix.from_torch(&theirs), ours);
        assert_eq!(
            tensor(&[6], NumberOrder::AsIs).to_torch(&ours[..6]),
            ours[..6]
        );
    }
}
