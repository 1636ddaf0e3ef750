//! The input as it is, in a buffer that the layers after it may change.

use super::Parameterless;
use crate::operation::Operation;
use crate::threads::{NUMBERS, Threads, pieces, pieces_mut};

/// A copy of the input.
pub(crate) struct InputCopy;

impl Parameterless for InputCopy {
    fn operation(&self) -> Operation {
        Operation::Copy
    }

    fn forward(&mut self, threads: &Threads, x: &[f32], y: &mut [f32]) {
        let tiles = (pieces(x, NUMBERS), pieces_mut(y, NUMBERS));
        threads.each(tiles, |_, (x, y)| y.copy_from_slice(x));
    }

    fn input_gradient(&mut self, threads: &Threads, _: &[f32], dy: &[f32], dx: &mut [f32]) {
        self.forward(threads, dy, dx);
    }
}
