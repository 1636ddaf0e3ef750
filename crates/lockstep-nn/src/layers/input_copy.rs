//! The input as it is, in a buffer that the layers after it may change.

use super::{Layer, Pass};
use crate::replica::Replica;

/// A copy of the input.
pub(crate) struct InputCopy;

impl Layer for InputCopy {
    fn scratch(&self, _rows: usize) -> usize {
        0
    }

    fn forward(&mut self, _: Pass<'_>, _: &[f32], x: &[f32], y: &mut [f32], _: &mut [f32]) {
        y.copy_from_slice(x);
    }

    fn backward(
        &mut self,
        _: &mut dyn Replica,
        _: &[f32],
        dy: &mut [f32],
        dx: Option<&mut [f32]>,
        _: &mut [f32],
    ) {
        if let Some(dx) = dx {
            dx.copy_from_slice(dy);
        }
    }
}
