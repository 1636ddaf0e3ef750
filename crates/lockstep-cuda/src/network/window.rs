//! Windows that slide over images, for kernels that visit them.

use super::divisor::Divisor;
use crate::arguments::arguments;
use lockstep_nn::{Dims, Window};

arguments! {
    /// Windows along one axis.
    pub(crate) struct Axis {
        input: u32,
        output: u32,
        kernel: u32,
        stride: Divisor,
        padding: u32,
    }

    /// How groups of channels lie on images.
    pub(crate) struct Pixels {
        groups: Divisor,
        width: Divisor,
        height: Divisor,
    }
}

/// The vertical and the horizontal view of windows, on an image that comes in and one that comes out.
pub(crate) fn axes(window: Window, [input, output]: [Dims; 2]) -> [Axis; 2] {
    let axis = |axis: usize, input: usize, output: usize| Axis {
        input: input as u32,
        output: output as u32,
        kernel: window.kernel[axis] as u32,
        stride: Divisor::new(window.stride[axis]),
        padding: window.padding[axis] as u32,
    };
    [
        axis(0, input.height, output.height),
        axis(1, input.width, output.width),
    ]
}
