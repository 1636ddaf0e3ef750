//! The average of each window, channel by channel. The margin counts as zeros, as in PyTorch.

use super::Parameterless;
use super::columns::{for_columns, group, group_mut};
use super::pool::pools;
use super::window::Window;
use crate::NnError;
use crate::build::Site;
use crate::dims::Dims;
use crate::graph::{Attribute, Flow, LayerGraph, window_attributes};
use crate::operation::Operation;
use crate::simd::for_each_isa;
use crate::spec::LayerKind;

pools! {
    /// The settings of a pool that takes the mean of each window, channel by channel. The margin counts as zeros. Sizes
    /// are `[vertical, horizontal]`.
    AvgPool,
    /// The settings of the same over sequences, which are images of one line.
    AvgPool1d,
    AvgPoolLayer, "AveragePool" [("count_include_pad", Attribute::Int(1))], "nn.AvgPool2d"
}

/// Average-pooling.
pub(crate) struct AvgPoolLayer {
    window: Window,
    input: Dims,
}

impl AvgPoolLayer {
    /// Of images of this shape, however many.
    pub(crate) fn new(input: Dims, window: Window, _rows: usize) -> Self {
        Self { window, input }
    }
}

impl Parameterless for AvgPoolLayer {
    fn operation(&self) -> Operation {
        let &Self { window, input } = self;
        Operation::AvgPool { window, input }
    }

    fn forward(&mut self, x: &[f32], y: &mut [f32]) {
        pool(self.window, self.input, x, y);
    }

    fn input_gradient(&mut self, _: &[f32], dy: &[f32], dx: &mut [f32]) {
        input_gradient(self.window, self.input, dy, dx);
    }
}

for_each_isa! {
    fn pool(window: Window, input: Dims, x: &[f32], y: &mut [f32]) {
        let channels = input.channels;
        let [down, across] = window.axes(input);
        let output = down.output * across.output * channels;
        let share = 1.0 / window.area() as f32;
        for (x, y) in x.chunks_exact(input.len()).zip(y.chunks_exact_mut(output)) {
            for (place, y) in y.chunks_exact_mut(channels).enumerate() {
                let (i, j) = (place / across.output, place % across.output);
                for_columns!(channels, |at, W| {
                    let mut sum = [0.0; W];
                    for row in down.pixels(i) {
                        for column in across.pixels(j) {
                            let x = group::<W>(&x[(row * input.width + column) * channels..], at);
                            for k in 0..W {
                                sum[k] += x[k];
                            }
                        }
                    }
                    *group_mut(y, at) = sum.map(|sum| sum * share);
                });
            }
        }
    }

    fn input_gradient(window: Window, input: Dims, dy: &[f32], dx: &mut [f32]) {
        let channels = input.channels;
        let [down, across] = window.axes(input);
        let output = down.output * across.output * channels;
        let share = 1.0 / window.area() as f32;
        for (dy, dx) in dy.chunks_exact(output).zip(dx.chunks_exact_mut(input.len())) {
            for (pixel, dx) in dx.chunks_exact_mut(channels).enumerate() {
                let (row, column) = (pixel / input.width, pixel % input.width);
                for_columns!(channels, |at, W| {
                    let mut sum = [0.0; W];
                    for i in down.windows(row) {
                        for j in across.windows(column) {
                            let dy = group::<W>(&dy[(i * across.output + j) * channels..], at);
                            for k in 0..W {
                                sum[k] += dy[k];
                            }
                        }
                    }
                    *group_mut(dx, at) = sum.map(|sum| sum * share);
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::check_layer;
    use super::*;
    use crate::layout::Layout;

    #[test]
    fn it_agrees_with_finite_differences() {
        for (rows, [height, width, channels], kernel, stride, padding) in [
            (1, [1, 1, 1], [1, 1], [1, 1], [0, 0]),
            (2, [4, 6, 3], [2, 2], [2, 2], [0, 0]),
            (3, [5, 5, 2], [2, 2], [2, 2], [0, 0]),
            (2, [7, 6, 9], [3, 3], [2, 2], [1, 1]),
            (1, [5, 4, 33], [3, 2], [1, 1], [1, 0]),
            (1, [7, 7, 41], [1, 2], [3, 3], [0, 1]),
            (1, [1, 1, 5], [3, 3], [2, 2], [1, 1]),
        ] {
            let input = Dims {
                height,
                width,
                channels,
            };
            let window = Window {
                kernel,
                stride,
                padding,
            };
            let output = window.output(input).unwrap();
            let definition = |_: &[f64], x: &[f64]| {
                let mut y = vec![0.0; rows * output.len()];
                for (at, y) in y.iter_mut().enumerate() {
                    let (row, at) = (at / output.len(), at % output.len());
                    let (pixel, channel) = (at / channels, at % channels);
                    let [top, left] = [pixel / output.width, pixel % output.width];
                    for i in 0..kernel[0] {
                        for j in 0..kernel[1] {
                            let i = (top * stride[0] + i).wrapping_sub(padding[0]);
                            let j = (left * stride[1] + j).wrapping_sub(padding[1]);
                            if i < height && j < width {
                                let pixel = (row * height + i) * width + j;
                                *y += x[pixel * channels + channel] / window.area() as f64;
                            }
                        }
                    }
                }
                y
            };
            let mut layer = AvgPoolLayer::new(input, window, rows);
            let (from, to) = (input.len(), output.len());
            check_layer(&mut layer, &Layout::default(), rows, from, to, &definition);
        }
    }
}
