//! One axis of a convolution: where its windows lie, and which errors each pixel meets on the way back.

use crate::dims::Dims;
use crate::layers::window::Window;

/// One axis of a convolution. An error is the gradient by an output.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    /// Places of an image, which stand for its windows, for its errors, and for the pixels of a class.
    pub(super) places: usize,
    /// Zeros before the errors of an image.
    pub(super) lead: usize,
    pub(super) classes: Vec<Class>,
}

/// The pixels of the input that meet the same places of the kernel. They are a stride apart, as these places are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Class {
    /// The first of the pixels.
    pub(super) pixel: usize,
    /// The first place of the kernel that they meet, and how many.
    pub(super) place: usize,
    pub(super) count: usize,
    /// The error that the first pixel meets at the first place; at the next place it meets the error before.
    pub(super) error: usize,
}

impl Axis {
    /// The vertical and the horizontal axis.
    pub(super) fn both(window: Window, input: Dims, output: Dims) -> [Self; 2] {
        let sizes = [[input.height, output.height], [input.width, output.width]];
        [0, 1].map(|axis| Self::new(window, axis, sizes[axis]))
    }

    fn new(window: Window, axis: usize, [input, output]: [usize; 2]) -> Self {
        let (kernel, stride) = (window.kernel[axis], window.stride[axis]);
        let padding = window.padding[axis];
        let class = |place: usize| {
            // Pixel p meets place k for the error (p + padding - k) / stride, if that is a whole number.
            let error = padding.saturating_sub(place).div_ceil(stride);
            Class {
                pixel: stride * error + place - padding,
                place,
                count: kernel.saturating_sub(place).div_ceil(stride),
                error,
            }
        };
        let classes = (0..stride).map(class);
        let classes: Vec<Class> = classes.filter(|class| class.pixel < input).collect();
        let lead = classes
            .iter()
            .map(|class| class.count.saturating_sub(1 + class.error));
        let lead = lead.max().unwrap_or(0);
        // What lies behind the errors of an image, up to the last that a pixel meets, must be zeros.
        let met = classes
            .iter()
            .map(|class| class.error + (input - 1 - class.pixel) / stride + 1);
        let met = met.max().unwrap_or(0);
        let windows = (input + padding).div_ceil(stride).max(output);
        Self {
            places: windows.max(output + lead).max(met),
            lead,
            classes,
        }
    }
}
