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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pixel_is_in_one_class_and_meets_the_errors_of_the_windows_that_saw_it() {
        for (input, kernel, stride, padding) in [
            (8, 3, 1, 1),
            (8, 3, 2, 1),
            (9, 7, 2, 3),
            (7, 1, 2, 0),
            (5, 2, 3, 0),
            (3, 2, 1, 3),
            (10, 5, 3, 4),
        ] {
            let window = Window {
                kernel: [kernel; 2],
                stride: [stride; 2],
                padding: [padding; 2],
            };
            let output = (input + 2 * padding - kernel) / stride + 1;
            let axis = Axis::new(window, 0, [input, output]);
            let mut met = vec![vec![]; input];
            for class in &axis.classes {
                for (i, pixel) in (class.pixel..input).step_by(stride).enumerate() {
                    for number in 0..class.count {
                        // Errors have a lead of zeros, and zeros behind them up to the next image's lead.
                        let error = (axis.lead + class.error + i).checked_sub(number);
                        let error = error.expect("no error lies before the lead");
                        assert!(error < axis.places + axis.lead);
                        let place = class.place + number * stride;
                        if (axis.lead..axis.lead + output).contains(&error) {
                            met[pixel].push((error - axis.lead, place));
                        }
                    }
                }
            }
            for (pixel, mut met) in met.into_iter().enumerate() {
                met.sort_unstable();
                let saw = |error: usize| {
                    let place = (pixel + padding).checked_sub(error * stride)?;
                    (place < kernel).then_some((error, place))
                };
                let expected: Vec<_> = (0..output).filter_map(saw).collect();
                assert_eq!(met, expected, "pixel {pixel} of {input}, {window:?}");
            }
            assert!(output + axis.lead <= axis.places);
        }
    }
}
