//! The largest number of each window, channel by channel.
//!
//! What is kept for the way back is one byte a number: where in its window the winner lies. As in PyTorch
//! the first of equals wins, a NaN wins over all, and the margin never does. On the way back every pixel
//! collects from the windows that it won, so it is written once, and windows may overlap.

use super::Parameterless;
use super::columns::{for_columns, group, group_mut};
use super::pool::pools;
use super::window::Window;
use crate::NnError;
use crate::build::Site;
use crate::dims::Dims;
use crate::graph::{Flow, LayerGraph, window_attributes};
use crate::operation::Operation;
use crate::simd::for_each_isa;
use crate::spec::LayerKind;
use crate::threads::{Threads, pieces_mut, rows_of_a_tile};

pools! {
    /// The settings of a pool that takes the largest number of each window, channel by channel. The margin is never the
    /// largest. Sizes are `[vertical, horizontal]`.
    MaxPool,
    /// The settings of the same over sequences, which are images of one line.
    MaxPool1d,
    MaxPoolLayer, "MaxPool" [], "nn.MaxPool2d"
}

/// The most pixels of a window that a byte can tell apart.
pub(crate) const MAX_AREA: usize = 256;

/// Max-pooling.
pub(crate) struct MaxPoolLayer {
    window: Window,
    input: Dims,
    /// The winner's place in its window, as long as the output of the most rows.
    winners: Vec<u8>,
}

impl MaxPoolLayer {
    /// Of images of this shape, at most `rows` at a time. A window has at most [`MAX_AREA`] pixels, and
    /// at least one outside the margin.
    pub(crate) fn new(input: Dims, window: Window, rows: usize) -> Self {
        debug_assert!(window.area() <= MAX_AREA);
        let output = window.output(input).map_or(0, Dims::len);
        Self {
            window,
            input,
            winners: vec![0; rows * output],
        }
    }
}

impl Parameterless for MaxPoolLayer {
    fn operation(&self) -> Operation {
        let &Self { window, input, .. } = self;
        Operation::MaxPool { window, input }
    }

    fn bytes(&self) -> usize {
        self.winners.len()
    }

    fn forward(&mut self, threads: &Threads, x: &[f32], y: &mut [f32]) {
        let (window, input) = (self.window, self.input);
        let numbers = window.axes(input)[1].output * input.channels;
        let lines = rows_of_a_tile(numbers);
        let winners = pieces_mut(&mut self.winners, lines * numbers);
        let tiles = (pieces_mut(y, lines * numbers), winners);
        threads.each(tiles, |tile, (y, winners)| {
            pool(window, input, x, tile * lines, y, winners);
        });
    }

    fn input_gradient(&mut self, threads: &Threads, _: &[f32], dy: &[f32], dx: &mut [f32]) {
        let (window, input) = (self.window, self.input);
        let numbers = input.width * input.channels;
        let lines = rows_of_a_tile(numbers);
        threads.each(pieces_mut(dx, lines * numbers), |tile, dx| {
            input_gradient(window, input, dy, &self.winners, tile * lines, dx);
        });
    }
}

for_each_isa! {
    /// Some lines of the output, of which the first has this number, counted over all images.
    fn pool(
        window: Window, input: Dims, x: &[f32], first: usize, y: &mut [f32], winners: &mut [u8],
    ) {
        let channels = input.channels;
        let [down, across] = window.axes(input);
        let line = across.output * channels;
        let lines = y.chunks_exact_mut(line).zip(winners.chunks_exact_mut(line)).enumerate();
        for (number, (y, winners)) in lines {
            let (image, i) = ((first + number) / down.output, (first + number) % down.output);
            let image = &x[image * input.len()..][..input.len()];
            let pixels = y.chunks_exact_mut(channels).zip(winners.chunks_exact_mut(channels));
            for (j, (y, winners)) in pixels.enumerate() {
                for_columns!(channels, |at, W| {
                    let mut best = [f32::NEG_INFINITY; W];
                    let first = (down.pixels(i).start, across.pixels(j).start);
                    let first = down.place(i, first.0) * across.kernel + across.place(j, first.1);
                    let mut winner = [first as u32; W];
                    for row in down.pixels(i) {
                        for column in across.pixels(j) {
                            let place = down.place(i, row) * across.kernel + across.place(j, column);
                            let x = group::<W>(&image[(row * input.width + column) * channels..], at);
                            for k in 0..W {
                                let wins = x[k] > best[k] || x[k].is_nan();
                                best[k] = if wins { x[k] } else { best[k] };
                                winner[k] = if wins { place as u32 } else { winner[k] };
                            }
                        }
                    }
                    *group_mut(y, at) = best;
                    winners[at..at + W].copy_from_slice(&winner.map(|place| place as u8));
                });
            }
        }
    }

    /// Some lines of the input's gradient, of which the first has this number, counted over all images.
    fn input_gradient(
        window: Window, input: Dims, dy: &[f32], winners: &[u8], first: usize, dx: &mut [f32],
    ) {
        let channels = input.channels;
        let [down, across] = window.axes(input);
        let output = down.output * across.output * channels;
        for (number, dx) in dx.chunks_exact_mut(input.width * channels).enumerate() {
            let (image, row) = ((first + number) / input.height, (first + number) % input.height);
            let dy = &dy[image * output..][..output];
            let winners = &winners[image * output..][..output];
            for (column, dx) in dx.chunks_exact_mut(channels).enumerate() {
                for_columns!(channels, |at, W| {
                    let mut sum = [0.0; W];
                    for i in down.windows(row) {
                        for j in across.windows(column) {
                            let place = down.place(i, row) * across.kernel + across.place(j, column);
                            let from = (i * across.output + j) * channels + at;
                            let (dy, winner) = (group::<W>(dy, from), &winners[from..from + W]);
                            for k in 0..W {
                                sum[k] += if winner[k] == place as u8 { dy[k] } else { 0.0 };
                            }
                        }
                    }
                    *group_mut(dx, at) = sum;
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

    fn image(height: usize, width: usize, channels: usize) -> Dims {
        Dims {
            height,
            width,
            channels,
        }
    }

    fn window(kernel: [usize; 2], stride: [usize; 2], padding: [usize; 2]) -> Window {
        Window {
            kernel,
            stride,
            padding,
        }
    }

    #[test]
    fn it_agrees_with_finite_differences() {
        for (rows, input, window) in [
            (1, image(1, 1, 1), window([1, 1], [1, 1], [0, 0])),
            (2, image(4, 6, 3), window([2, 2], [2, 2], [0, 0])),
            (3, image(5, 5, 2), window([2, 2], [2, 2], [0, 0])),
            (2, image(7, 6, 9), window([3, 3], [2, 2], [1, 1])),
            (1, image(5, 4, 33), window([3, 2], [1, 1], [1, 0])),
            (1, image(7, 7, 41), window([1, 2], [3, 3], [0, 1])),
            (1, image(1, 1, 5), window([3, 3], [2, 2], [1, 1])),
        ] {
            let output = window.output(input).unwrap();
            let definition = |_: &[f64], x: &[f64]| -> Vec<f64> {
                let outputs = 0..rows * output.len();
                let largest = outputs.map(|at| {
                    let (row, at) = (at / output.len(), at % output.len());
                    let (pixel, channel) = (at / input.channels, at % input.channels);
                    let [down, across] = window.axes(input);
                    let columns = across.pixels(pixel % output.width);
                    let rows = down.pixels(pixel / output.width);
                    let pixels = rows.flat_map(|i| columns.clone().map(move |j| (i, j)));
                    let numbers = pixels.map(|(i, j)| {
                        let pixel = row * input.pixels() + i * input.width + j;
                        x[pixel * input.channels + channel]
                    });
                    numbers.fold(f64::NEG_INFINITY, f64::max)
                });
                largest.collect()
            };
            let mut layer = MaxPoolLayer::new(input, window, rows);
            let (from, to) = (input.len(), output.len());
            check_layer(&mut layer, &Layout::default(), rows, from, to, &definition);
        }
    }

    /// Forward and backward with a gradient of 1 a window.
    fn both(input: Dims, window: Window, x: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let mut layer = MaxPoolLayer::new(input, window, 1);
        let mut y = vec![0.0; window.output(input).unwrap().len()];
        pool(window, input, x, 0, &mut y, &mut layer.winners);
        let mut dx = vec![f32::NAN; x.len()];
        input_gradient(
            window,
            input,
            &vec![1.0; y.len()],
            &layer.winners,
            0,
            &mut dx,
        );
        (y, dx)
    }

    #[test]
    fn the_first_of_equals_wins_and_overlapping_windows_add() {
        let overlapping = window([1, 2], [1, 1], [0, 0]);
        let (y, dx) = both(image(1, 4, 1), overlapping, &[1.0, 3.0, 3.0, 3.0]);
        assert_eq!(y, [3.0, 3.0, 3.0]);
        assert_eq!(dx, [0.0, 2.0, 1.0, 0.0]);
    }

    #[test]
    fn a_nan_wins_and_the_margin_never_does() {
        let padded = window([1, 3], [1, 3], [0, 1]);
        let x = [-1.0, -2.0, f32::NAN, 5.0, f32::NEG_INFINITY];
        let (y, dx) = both(image(1, 5, 1), padded, &x);
        assert_eq!(y[0], -1.0);
        assert!(y[1].is_nan());
        assert_eq!(dx, [1.0, 0.0, 1.0, 0.0, 0.0]);
        let (y, dx) = both(image(1, 2, 1), padded, &[f32::NEG_INFINITY; 2]);
        assert_eq!(y, [f32::NEG_INFINITY]);
        assert_eq!(dx, [1.0, 0.0], "a pixel of the image, not of the margin");
    }

    #[test]
    fn every_place_of_the_largest_window_fits_a_byte() {
        let largest = window([16, 16], [16, 16], [0, 0]);
        let mut x = vec![0.0; MAX_AREA];
        x[MAX_AREA - 1] = 1.0;
        let (y, dx) = both(image(16, 16, 1), largest, &x);
        assert_eq!((y, dx), (vec![1.0], x));
    }
}
