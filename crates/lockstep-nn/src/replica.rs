//! The other side of a backward pass: where parameters are read and finished gradients go.

use std::ops::Range;

/// A worker's view of the state vector while a step is computed.
///
/// A backward pass calls [`Replica::gradient`] once for every chunk of the layout that is not frozen, the last chunk
/// first. An implementation may reduce, exchange and update a chunk inside that call, while its numbers
/// are in cache: a layer has finished reading its parameters before it hands out their gradient, and no
/// earlier layer reads them.
pub trait Replica {
    /// The state vector as it is now: a layer's own part is as it was between steps until that layer hands
    /// out its gradient.
    fn state(&self) -> &[f32];

    /// Offers to take the output of the layout's `number`-th dense layer from elsewhere, before it is
    /// computed. `y` is room for it; who fills it returns true. Offered for the layer that reads the batch
    /// itself, [`Layout::first_dense`](crate::Layout::first_dense).
    fn output(&mut self, _number: usize, _y: &mut [f32]) -> bool {
        false
    }

    /// Takes the gradient of one chunk. `fill` writes all of its numbers to the slice it is given, which
    /// is as long as the chunk and holds nothing of meaning before.
    fn gradient(&mut self, chunk: usize, fill: &mut dyn FnMut(&mut [f32]));

    /// Offers the factors of all chunks of the layout's `number`-th dense layer, as early as they are
    /// known. Who takes them, by returning true, forms the chunks' gradients from them, and
    /// [`Replica::gradient`] is not called for those chunks. The layer still reads its parameters, until
    /// [`Replica::factors_used`].
    fn factors(&mut self, _number: usize, _x: &[f32], _dy: &[f32]) -> bool {
        false
    }

    /// Says that a layer whose factors were taken has finished reading its parameters.
    fn factors_used(&mut self, _number: usize) {}
}

/// A replica that only collects the gradient, for tests and tools.
#[derive(Debug, Clone)]
pub struct Collect<'a> {
    state: &'a [f32],
    chunks: &'a [Range<usize>],
    /// The gradient, as long as the state vector.
    pub gradient: Vec<f32>,
}

impl<'a> Collect<'a> {
    /// Collects the gradient at `state`.
    pub fn new(state: &'a [f32], layout: &'a crate::Layout) -> Self {
        Self::reusing(state, layout, Vec::new())
    }

    /// Collects the gradient at `state` in a vector that was used before.
    pub fn reusing(state: &'a [f32], layout: &'a crate::Layout, mut gradient: Vec<f32>) -> Self {
        gradient.resize(state.len(), f32::NAN);
        Self {
            state,
            chunks: &layout.chunks,
            gradient,
        }
    }
}

impl Replica for Collect<'_> {
    fn state(&self) -> &[f32] {
        self.state
    }

    fn gradient(&mut self, chunk: usize, fill: &mut dyn FnMut(&mut [f32])) {
        fill(&mut self.gradient[self.chunks[chunk].clone()]);
    }
}
