//! Windows that slide over an image: which pixels a window covers, and which windows cover a pixel.

use super::max_pool::MAX_AREA;
use crate::dims::Dims;
use crate::error::{LayerFault, NnError};
use std::ops::Range;

/// Windows of one size at regular places, over an image with a margin. `[vertical, horizontal]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Pixels that a window covers.
    pub kernel: [usize; 2],
    /// Pixels from one window to the next.
    pub stride: [usize; 2],
    /// Pixels of margin on each side.
    pub padding: [usize; 2],
}

impl Window {
    /// How many windows there are on an image, or none if not even one fits. Channels stay.
    pub(crate) fn output(self, input: Dims) -> Option<Dims> {
        let places = |axis: usize, pixels: usize| {
            let room = (pixels + 2 * self.padding[axis]).checked_sub(self.kernel[axis])?;
            Some(room.checked_div(self.stride[axis])? + 1)
        };
        Some(Dims {
            height: places(0, input.height)?,
            width: places(1, input.width)?,
            channels: input.channels,
        })
    }

    /// The windows of a layer on an image, of which at least one must fit.
    pub(crate) fn of_layer(self, name: &str, input: Dims) -> Result<Dims, NnError> {
        let (kernel, stride, padding) = (self.kernel, self.stride, self.padding);
        if kernel.contains(&0) || stride.contains(&0) {
            return Err(LayerFault::NoWindow { kernel, stride }.of(name));
        }
        let fault = LayerFault::TooSmall {
            kernel,
            padding,
            input,
        };
        self.output(input).ok_or_else(|| fault.of(name))
    }

    /// The same for a pool, where every window has a pixel of the image.
    pub(crate) fn of_pool(self, name: &str, input: Dims) -> Result<Dims, NnError> {
        let output = self.of_layer(name, input)?;
        let (kernel, padding) = (self.kernel, self.padding);
        let fits = |axis: usize| 2 * padding[axis] <= kernel[axis];
        match fits(0) && fits(1) && self.area() <= MAX_AREA {
            true => Ok(output),
            false => Err(LayerFault::Pool { kernel, padding }.of(name)),
        }
    }

    /// Kernel, stride and padding as arguments of a function in Python.
    pub(crate) fn in_python(self) -> String {
        let pair = |[height, width]: [usize; 2]| format!("({height}, {width})");
        [self.kernel, self.stride, self.padding]
            .map(pair)
            .join(", ")
    }

    /// Pixels that a window covers.
    pub(crate) fn area(self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// The vertical and the horizontal view of windows on an image of this shape.
    pub(crate) fn axes(self, input: Dims) -> [Axis; 2] {
        let output = self.output(input).unwrap_or(Dims {
            height: 0,
            width: 0,
            ..input
        });
        let axis = |axis: usize, input, output| Axis {
            input,
            output,
            kernel: self.kernel[axis],
            stride: self.stride[axis],
            padding: self.padding[axis],
        };
        [
            axis(0, input.height, output.height),
            axis(1, input.width, output.width),
        ]
    }
}

/// Windows along one axis.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    /// Pixels of the image.
    pub(crate) input: usize,
    /// Number of windows.
    pub(crate) output: usize,
    pub(crate) kernel: usize,
    stride: usize,
    padding: usize,
}

impl Axis {
    /// The image's pixels that a window covers.
    #[inline(always)]
    pub(crate) fn pixels(self, window: usize) -> Range<usize> {
        let begin = window * self.stride;
        let end = (begin + self.kernel).min(self.input + self.padding);
        begin.saturating_sub(self.padding)..end.saturating_sub(self.padding)
    }

    /// The windows that cover a pixel.
    #[inline(always)]
    pub(crate) fn windows(self, pixel: usize) -> Range<usize> {
        let at = pixel + self.padding;
        let first = (at + 1).saturating_sub(self.kernel).div_ceil(self.stride);
        first..(at / self.stride + 1).min(self.output)
    }

    /// The pixel at a place of a window, unless it is in the margin.
    #[inline(always)]
    pub(crate) fn pixel(self, window: usize, place: usize) -> Option<usize> {
        let pixel = (window * self.stride + place).checked_sub(self.padding)?;
        (pixel < self.input).then_some(pixel)
    }

    /// Where in a window a pixel lies that it covers.
    #[inline(always)]
    pub(crate) fn place(self, window: usize, pixel: usize) -> usize {
        pixel + self.padding - window * self.stride
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_and_windows_are_two_views_of_the_same() {
        for (input, kernel, stride, padding) in [
            (1, 1, 1, 0),
            (7, 3, 2, 1),
            (8, 3, 2, 1),
            (5, 2, 3, 0),
            (9, 2, 2, 0),
            (6, 5, 1, 2),
            (1, 3, 1, 1),
        ] {
            let window = Window {
                kernel: [kernel; 2],
                stride: [stride; 2],
                padding: [padding; 2],
            };
            let dims = Dims {
                height: input,
                width: input,
                channels: 1,
            };
            let [axis, _] = window.axes(dims);
            assert!(axis.output > 0);
            for at in 0..axis.output {
                for pixel in 0..input {
                    let covered = axis.pixels(at).contains(&pixel);
                    assert_eq!(covered, axis.windows(pixel).contains(&at));
                    let begin = (at * stride) as isize - padding as isize;
                    let place = pixel as isize - begin;
                    assert_eq!(covered, (0..kernel as isize).contains(&place));
                    if covered {
                        assert_eq!(axis.place(at, pixel), place as usize);
                        assert_eq!(axis.pixel(at, place as usize), Some(pixel));
                    }
                }
            }
        }
    }

    #[test]
    fn a_window_larger_than_its_image_has_no_place() {
        let window = |kernel, padding| Window {
            kernel: [kernel; 2],
            stride: [2; 2],
            padding: [padding; 2],
        };
        let image = Dims {
            height: 3,
            width: 4,
            channels: 5,
        };
        assert_eq!(window(4, 0).output(image), None);
        let expected = Dims {
            height: 1,
            width: 2,
            channels: 5,
        };
        assert_eq!(window(4, 1).output(image), Some(expected));
    }
}
