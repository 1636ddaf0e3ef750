//! The input as it is, in a buffer that the layers after it may change.

use super::Parameterless;
use crate::operation::Operation;

/// A copy of the input.
pub(crate) struct InputCopy;

impl Parameterless for InputCopy {
    fn operation(&self) -> Operation {
        Operation::Copy
    }

    fn forward(&mut self, x: &[f32], y: &mut [f32]) {
        y.copy_from_slice(x);
    }

    fn input_gradient(&mut self, _: &[f32], dy: &[f32], dx: &mut [f32]) {
        dx.copy_from_slice(dy);
    }
}
