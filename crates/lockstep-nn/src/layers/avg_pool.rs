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
use crate::threads::{Threads, pieces_mut, rows_of_a_tile};

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

    fn forward(&mut self, threads: &Threads, x: &[f32], y: &mut [f32]) {
        let (window, input) = (self.window, self.input);
        let numbers = window.axes(input)[1].output * input.channels;
        let lines = rows_of_a_tile(numbers);
        threads.each(pieces_mut(y, lines * numbers), |tile, y| {
            pool(window, input, x, tile * lines, y);
        });
    }

    fn input_gradient(&mut self, threads: &Threads, _: &[f32], dy: &[f32], dx: &mut [f32]) {
        let (window, input) = (self.window, self.input);
        let numbers = input.width * input.channels;
        let lines = rows_of_a_tile(numbers);
        threads.each(pieces_mut(dx, lines * numbers), |tile, dx| {
            input_gradient(window, input, dy, tile * lines, dx);
        });
    }
}

for_each_isa! {
    /// Some lines of the output, of which the first has this number, counted over all images.
    fn pool(window: Window, input: Dims, x: &[f32], first: usize, y: &mut [f32]) {
        let channels = input.channels;
        let [down, across] = window.axes(input);
        let share = 1.0 / window.area() as f32;
        for (number, y) in y.chunks_exact_mut(across.output * channels).enumerate() {
            let (image, i) = ((first + number) / down.output, (first + number) % down.output);
            let x = &x[image * input.len()..][..input.len()];
            for (j, y) in y.chunks_exact_mut(channels).enumerate() {
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

    /// Some lines of the input's gradient, of which the first has this number, counted over all images.
    fn input_gradient(window: Window, input: Dims, dy: &[f32], first: usize, dx: &mut [f32]) {
        let channels = input.channels;
        let [down, across] = window.axes(input);
        let output = down.output * across.output * channels;
        let share = 1.0 / window.area() as f32;
        for (number, dx) in dx.chunks_exact_mut(input.width * channels).enumerate() {
            let (image, row) = ((first + number) / input.height, (first + number) % input.height);
            let dy = &dy[image * output..][..output];
            for (column, dx) in dx.chunks_exact_mut(channels).enumerate() {
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
