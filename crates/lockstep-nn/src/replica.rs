//! The other side of a backward pass: where parameters are read and finished gradients go.

use crate::factors::add;
use std::ops::Range;

/// A worker's view of the state vector while a step is computed.
///
/// A pass computes one lane or several, whose rows follow each other. Backward it calls [`Replica::gradient`] for
/// every lane and every chunk of the layout that is not frozen: the last layers first, and the lanes of a layer in their
/// order. An implementation may reduce, exchange and update a chunk inside the last lane's call, while its numbers are
/// in cache: a layer has finished reading its parameters before it hands out their gradient, and no earlier layer reads
/// them. Lanes are named by their place in the pass.
pub trait Replica {
    /// The state vector as it is now: a layer's own part is as it was between steps until that layer hands
    /// out its gradient.
    fn state(&self) -> &[f32];

    /// Offers to take the output of the layout's `number`-th dense layer from elsewhere, before it is
    /// computed. `y` is room for one lane's; who fills it returns true, for every lane or for none. Offered for the
    /// layer that reads the batch itself, [`Layout::first_dense`](crate::Layout::first_dense).
    fn output(&mut self, _lane: usize, _number: usize, _y: &mut [f32]) -> bool {
        false
    }

    /// Takes the gradient of some chunks of one layer, of some lanes. It may be asked for several chunks at once, on
    /// several threads, in any order.
    fn gradient(&mut self, lanes: Range<usize>, chunks: Range<usize>, gradient: &dyn LayerGradient);

    /// Offers one lane's factors of all chunks of the layout's `number`-th dense layer, as early as they are
    /// known. Who takes them, by returning true, for every lane or for none, forms the chunks' gradients from them, and
    /// [`Replica::gradient`] is not called for those chunks. The layer still reads its parameters, until
    /// [`Replica::factors_used`].
    fn factors(&mut self, _lane: usize, _number: usize, _x: &[f32], _dy: &[f32]) -> bool {
        false
    }

    /// Says that a layer whose factors were taken, of all lanes, has finished reading its parameters.
    fn factors_used(&mut self, _number: usize) {}
}

/// The gradient of a layer, lane by lane and chunk by chunk.
pub trait LayerGradient: Sync {
    /// Writes one lane's gradient of a chunk. The slice is as long as the chunk, and holds nothing of meaning before.
    fn write(&self, lane: usize, chunk: usize, to: &mut [f32]);

    /// Adds it to a sum, to the same bits as if it were written and then added. `spare` is at least as long as the chunk.
    fn add(&self, lane: usize, chunk: usize, sum: &mut [f32], spare: &mut [f32]) {
        let spare = &mut spare[..sum.len()];
        self.write(lane, chunk, spare);
        add(sum, spare);
    }
}

/// A gradient that a function writes, by lane and chunk.
pub(crate) fn written<F: Fn(usize, usize, &mut [f32]) + Sync>(write: F) -> F {
    write
}

impl<F: Fn(usize, usize, &mut [f32]) + Sync> LayerGradient for F {
    fn write(&self, lane: usize, chunk: usize, to: &mut [f32]) {
        self(lane, chunk, to);
    }
}

/// A replica that only collects the gradient of a pass of one lane, for tests and tools.
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

    fn gradient(
        &mut self,
        lanes: Range<usize>,
        chunks: Range<usize>,
        gradient: &dyn LayerGradient,
    ) {
        assert_eq!(lanes, 0..1, "the gradient of one lane");
        for chunk in chunks {
            gradient.write(0, chunk, &mut self.gradient[self.chunks[chunk].clone()]);
        }
    }
}
