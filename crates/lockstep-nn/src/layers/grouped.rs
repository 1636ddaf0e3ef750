//! Grouped convolution: the channels are parted into groups, and each output channel sees one of them. With as many
//! groups as channels it is a depthwise one.
//!
//! Kernels lie as `[height, width, in / groups, out]`, like those of a plain convolution. There is too little to
//! multiply in a group for matrix products to pay: every window is visited, and vectors run across its channels.

use super::conv_weights::ConvWeights;
use super::window::{Axis, Window};
use super::{Layer, Pass, carve, carved, of_rows};
use crate::dims::Dims;
use crate::factors::{add, sum_rows};
use crate::layout::Layout;
use crate::operation::{ConvolutionMethod, Operation};
use crate::replica::Replica;
use crate::simd::for_each_isa;
use crate::threads::{Threads, pieces, pieces_mut, rows_of_a_tile};
use std::ops::Range;

/// A convolution in groups.
pub(crate) struct GroupedConv2d {
    window: Window,
    shape: Shape,
    weights: ConvWeights,
}

/// Its shapes.
#[derive(Clone, Copy)]
struct Shape {
    input: Dims,
    output: Dims,
    groups: usize,
    axes: [Axis; 2],
}

impl Shape {
    /// Input and output channels of a group.
    fn widths(self) -> [usize; 2] {
        [
            self.input.channels / self.groups,
            self.output.channels / self.groups,
        ]
    }

    /// Numbers of the kernels.
    fn weights(self) -> usize {
        let [vertical, horizontal] = self.axes;
        vertical.kernel * horizontal.kernel * self.widths()[0] * self.output.channels
    }

    /// Places of a kernel.
    fn places(self) -> usize {
        self.axes[0].kernel * self.axes[1].kernel
    }

    /// Numbers of a line of the output.
    fn line(self) -> usize {
        self.output.width * self.output.channels
    }

    /// Calls `visit` for every window of some lines of the output and every pixel of the image in it, with the places of
    /// the output and of the input pixel, and the first row of the kernels' matrix that belongs to the pixel.
    #[inline(always)]
    fn visit(self, lines: Range<usize>, mut visit: impl FnMut(usize, usize, usize)) {
        let [vertical, horizontal] = self.axes;
        let [inputs, _] = self.widths();
        for top in lines {
            for left in 0..self.output.width {
                let out = (top * self.output.width + left) * self.output.channels;
                for y in vertical.pixels(top) {
                    for x in horizontal.pixels(left) {
                        let (down, right) = (vertical.place(top, y), horizontal.place(left, x));
                        let row = (down * horizontal.kernel + right) * inputs;
                        visit(out, (y * self.input.width + x) * self.input.channels, row);
                    }
                }
            }
        }
    }

    /// Calls `visit` for every window that has a pixel of the image at a place of the kernel, with the places of the
    /// output and of that pixel.
    #[inline(always)]
    fn visit_place(self, place: usize, mut visit: impl FnMut(usize, usize)) {
        let [vertical, horizontal] = self.axes;
        let (down, right) = (place / horizontal.kernel, place % horizontal.kernel);
        for top in 0..self.output.height {
            let Some(y) = vertical.pixel(top, down) else {
                continue;
            };
            for left in 0..self.output.width {
                if let Some(x) = horizontal.pixel(left, right) {
                    let out = (top * self.output.width + left) * self.output.channels;
                    visit(out, (y * self.input.width + x) * self.input.channels);
                }
            }
        }
    }
}

impl GroupedConv2d {
    /// Appends the layer's tensors to the layout. At least one window fits the image, and the groups part the channels
    /// of input and output evenly.
    pub(crate) fn new(
        name: &str,
        (input, output): (Dims, Dims),
        window: Window,
        groups: usize,
        bias: bool,
        layout: &mut Layout,
    ) -> Self {
        let shape = Shape {
            input,
            output,
            groups,
            axes: window.axes(input),
        };
        let [height, width] = window.kernel;
        let kernels = [output.channels, input.channels / groups, height, width];
        let weights = ConvWeights::new(name, kernels, bias, layout);
        Self {
            window,
            shape,
            weights,
        }
    }
}

impl Layer for GroupedConv2d {
    fn scratch(&self, threads: &Threads, _rows: usize) -> usize {
        let shape = self.shape;
        let of_place = shape.widths()[0] * shape.output.channels;
        let rooms = threads.rooms(of_place, shape.places());
        carved(shape.weights()) + 2 * carved(shape.output.channels) + rooms
    }

    fn operation(&self) -> Operation {
        let groups = self.shape.groups;
        let method = ConvolutionMethod::Grouped { groups };
        self.weights
            .operation(method, self.window, [self.shape.input, self.shape.output])
    }

    fn forward(&mut self, pass: Pass<'_>, state: &[f32], x: &[f32], y: &mut [f32], _: &mut [f32]) {
        let shape = self.shape;
        let weight = &state[self.weights.weight.clone()];
        // Lines of the output, of all images.
        let lines = rows_of_a_tile(shape.line());
        pass.threads
            .each(pieces_mut(y, lines * shape.line()), |tile, y| {
                match &self.weights.bias {
                    Some(bias) => {
                        for pixel in y.chunks_exact_mut(shape.output.channels) {
                            pixel.copy_from_slice(&state[bias.clone()]);
                        }
                    }
                    None => y.fill(0.0),
                }
                for (number, y) in y.chunks_exact_mut(shape.line()).enumerate() {
                    let line = tile * lines + number;
                    let image = line / shape.output.height * shape.input.len();
                    let x = &x[image..image + shape.input.len()];
                    convolve(shape, weight, x, line % shape.output.height, y);
                }
            });
    }

    fn backward(
        &mut self,
        pass: Pass<'_>,
        replica: &mut dyn Replica,
        x: &[f32],
        dy: &mut [f32],
        dx: Option<&mut [f32]>,
        scratch: &mut [f32],
    ) {
        let shape = self.shape;
        let (threads, channels) = (pass.threads, shape.output.channels);
        let dy = &*dy;
        if let Some(dx) = dx {
            let weight = &replica.state()[self.weights.weight.clone()];
            let images = pieces(dy, shape.output.len());
            let tiles = (images, pieces_mut(dx, shape.input.len()));
            threads.each(tiles, |_, (dy, dx)| {
                dx.fill(0.0);
                input_gradient(shape, weight, dy, dx);
            });
        }
        let (weight, scratch) = carve(scratch, shape.weights());
        let (bias, scratch) = carve(scratch, channels);
        let (image, room) = carve(scratch, channels);
        for (lane, rows) in pass.lanes.iter().enumerate() {
            let x = of_rows(x, rows, shape.input.len());
            let dy = of_rows(dy, rows, shape.output.len());
            let images = || {
                x.chunks_exact(shape.input.len())
                    .zip(dy.chunks_exact(shape.output.len()))
            };
            // Images one by one: single precision loses less on short sums.
            let of_place = shape.widths()[0] * channels;
            let places = pieces_mut(weight, of_place);
            threads.each_in(room, of_place, places, |image, place, weight| {
                weight.fill(0.0);
                for (x, dy) in images() {
                    image.fill(0.0);
                    weight_gradient(shape, place, x, dy, image);
                    add(weight, image);
                }
            });
            bias.fill(0.0);
            if self.weights.bias.is_some() {
                for (_, dy) in images() {
                    sum_rows(dy, image);
                    add(bias, image);
                }
            }
            let chunks = self.weights.chunks.clone();
            let gradient = self.weights.gradient(weight, bias);
            replica.gradient(lane..lane + 1, chunks, &gradient);
        }
    }
}

for_each_isa! {
    /// Adds one line of the output to `y`.
    fn convolve(shape: Shape, weight: &[f32], x: &[f32], line: usize, y: &mut [f32]) {
        let ([inputs, outputs], channels) = (shape.widths(), shape.output.channels);
        let first = line * shape.line();
        shape.visit(line..line + 1, |out, pixel, row| {
            let out = out - first;
            let (y, x) = (&mut y[out..out + channels], &x[pixel..pixel + shape.input.channels]);
            let weight = &weight[row * channels..(row + inputs) * channels];
            if inputs == 1 && outputs == 1 {
                for ((y, x), w) in y.iter_mut().zip(x).zip(weight) {
                    *y += x * w;
                }
                return;
            }
            for (group, x) in x.chunks_exact(inputs).enumerate() {
                let group = group * outputs..(group + 1) * outputs;
                let y = &mut y[group.clone()];
                for (&x, weight) in x.iter().zip(weight.chunks_exact(channels)) {
                    for (y, w) in y.iter_mut().zip(&weight[group.clone()]) {
                        *y += x * w;
                    }
                }
            }
        });
    }

    fn input_gradient(shape: Shape, weight: &[f32], dy: &[f32], dx: &mut [f32]) {
        let ([inputs, outputs], channels) = (shape.widths(), shape.output.channels);
        shape.visit(0..shape.output.height, |out, pixel, row| {
            let (dy, dx) = (&dy[out..out + channels], &mut dx[pixel..pixel + shape.input.channels]);
            let weight = &weight[row * channels..(row + inputs) * channels];
            if inputs == 1 && outputs == 1 {
                for ((dx, dy), w) in dx.iter_mut().zip(dy).zip(weight) {
                    *dx += dy * w;
                }
                return;
            }
            for (group, dx) in dx.chunks_exact_mut(inputs).enumerate() {
                let group = group * outputs..(group + 1) * outputs;
                let dy = &dy[group.clone()];
                for (dx, weight) in dx.iter_mut().zip(weight.chunks_exact(channels)) {
                    for (dy, w) in dy.iter().zip(&weight[group.clone()]) {
                        *dx += dy * w;
                    }
                }
            }
        });
    }

    /// Adds the gradient by the weights at one place of the kernel.
    fn weight_gradient(shape: Shape, place: usize, x: &[f32], dy: &[f32], gradient: &mut [f32]) {
        let ([inputs, outputs], channels) = (shape.widths(), shape.output.channels);
        shape.visit_place(place, |out, pixel| {
            let (dy, x) = (&dy[out..out + channels], &x[pixel..pixel + shape.input.channels]);
            if inputs == 1 && outputs == 1 {
                for ((dw, x), dy) in gradient.iter_mut().zip(x).zip(dy) {
                    *dw += x * dy;
                }
                return;
            }
            for (group, x) in x.chunks_exact(inputs).enumerate() {
                let group = group * outputs..(group + 1) * outputs;
                let dy = &dy[group.clone()];
                for (&x, gradient) in x.iter().zip(gradient.chunks_exact_mut(channels)) {
                    for (dw, dy) in gradient[group.clone()].iter_mut().zip(dy) {
                        *dw += x * dy;
                    }
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::check_layer;
    use super::*;

    /// Window by window, channel by channel.
    fn definition(
        (shape, window): (Shape, Window),
        bias: bool,
        state: &[f64],
        x: &[f64],
    ) -> Vec<f64> {
        let (input, output) = (shape.input, shape.output);
        let [inputs, outputs] = shape.widths();
        let Window {
            kernel,
            stride,
            padding,
        } = window;
        let mut y = Vec::new();
        for image in x.chunks(input.len()) {
            for at in 0..output.len() {
                let (pixel, channel) = (at / output.channels, at % output.channels);
                let (top, left) = (pixel / output.width, pixel % output.width);
                let mut sum = if bias {
                    state[shape.weights() + channel]
                } else {
                    0.0
                };
                for down in 0..kernel[0] {
                    for right in 0..kernel[1] {
                        let y = (top * stride[0] + down).wrapping_sub(padding[0]);
                        let x = (left * stride[1] + right).wrapping_sub(padding[1]);
                        if y >= input.height || x >= input.width {
                            continue;
                        }
                        for i in 0..inputs {
                            let from = channel / outputs * inputs + i;
                            let row = (down * kernel[1] + right) * inputs + i;
                            let weight = state[row * output.channels + channel];
                            sum += image[(y * input.width + x) * input.channels + from] * weight;
                        }
                    }
                }
                y.push(sum);
            }
        }
        y
    }

    #[test]
    fn it_agrees_with_finite_differences() {
        // Channels of input and output, groups, kernel, stride, padding.
        let cases = [
            (4, 4, 4, [3, 3], [1, 1], [1, 1]),
            (3, 6, 3, [2, 3], [2, 1], [0, 1]),
            (6, 4, 2, [3, 1], [1, 2], [1, 0]),
            (40, 40, 40, [3, 3], [2, 2], [1, 1]),
        ];
        for (inputs, outputs, groups, kernel, stride, padding) in cases {
            for bias in [false, true] {
                let window = Window {
                    kernel,
                    stride,
                    padding,
                };
                let input = Dims {
                    height: 5,
                    width: 6,
                    channels: inputs,
                };
                let output = window.output(input).unwrap();
                let output = Dims {
                    channels: outputs,
                    ..output
                };
                let mut layout = Layout::default();
                let dims = (input, output);
                let mut layer = GroupedConv2d::new("conv", dims, window, groups, bias, &mut layout);
                let shape = layer.shape;
                let definition =
                    |state: &[f64], x: &[f64]| definition((shape, window), bias, state, x);
                check_layer(
                    &mut layer,
                    &layout,
                    2,
                    input.len(),
                    output.len(),
                    &definition,
                );
            }
        }
    }
}
