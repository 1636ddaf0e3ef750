//! The average of each window, channel by channel. The margin counts as zeros, as in PyTorch.

use super::columns::{for_columns, group, group_mut};
use super::window::Window;
use super::{Layer, Pass};
use crate::NnError;
use crate::build::Site;
use crate::dims::Dims;
use crate::graph::{Attribute, Flow, LayerGraph, window_attributes};
use crate::replica::Replica;
use crate::simd::for_each_isa;
use crate::spec::LayerKind;

/// The settings of a pool that takes the mean of each window, channel by channel. Sizes are `[vertical, horizontal]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AvgPool {
    /// Pixels of a window.
    pub kernel: [usize; 2],
    /// Pixels from one window to the next.
    pub stride: [usize; 2],
    /// Zeros around the image, on each side, that count.
    pub padding: [usize; 2],
}

impl AvgPool {
    fn window(&self) -> Window {
        Window {
            kernel: self.kernel,
            stride: self.stride,
            padding: self.padding,
        }
    }
}

impl LayerKind for AvgPool {
    fn build(&self, site: &mut Site<'_>) -> Result<(), NnError> {
        let Site { chain, .. } = site;
        let (input, window) = (chain.output(), self.window());
        let output = window.of_pool(site.name, input)?;
        chain.push(Box::new(AvgPoolLayer::new(input, window)), output);
        Ok(())
    }

    fn write_graph(&self, flow: Flow, graph: &mut LayerGraph<'_>) -> Flow {
        let flow = graph.as_image(flow);
        let mut settings = window_attributes(self.window());
        settings.push(("count_include_pad", Attribute::Int(1)));
        Flow {
            value: graph.node("AveragePool", &[&flow.value], &settings),
            dims: graph.output,
            ..flow
        }
    }

    fn torch_module(&self) -> String {
        format!("nn.AvgPool2d({})", self.window().in_python())
    }

    fn sample() -> (Dims, Self) {
        let input = Dims::image(5, 4, 3);
        let layer = Self {
            kernel: [3, 2],
            stride: [2, 1],
            padding: [1, 0],
        };
        (input, layer)
    }
}

/// The settings of the same over sequences, which are images of one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AvgPool1d {
    /// Numbers of a window.
    pub kernel: usize,
    /// Numbers from one window to the next.
    pub stride: usize,
}

impl AvgPool1d {
    fn of_images(&self) -> AvgPool {
        AvgPool {
            kernel: [1, self.kernel],
            stride: [1, self.stride],
            padding: [0, 0],
        }
    }
}

impl LayerKind for AvgPool1d {
    fn build(&self, site: &mut Site<'_>) -> Result<(), NnError> {
        self.of_images().build(site)
    }

    fn write_graph(&self, flow: Flow, graph: &mut LayerGraph<'_>) -> Flow {
        self.of_images().write_graph(flow, graph)
    }

    fn torch_module(&self) -> String {
        self.of_images().torch_module()
    }

    fn sample() -> (Dims, Self) {
        let input = Dims::image(1, 9, 2);
        let layer = Self {
            kernel: 3,
            stride: 2,
        };
        (input, layer)
    }
}

/// Average-pooling.
pub(crate) struct AvgPoolLayer {
    window: Window,
    input: Dims,
}

impl AvgPoolLayer {
    /// Of images of this shape.
    pub(crate) fn new(input: Dims, window: Window) -> Self {
        Self { window, input }
    }
}

impl Layer for AvgPoolLayer {
    fn scratch(&self, _rows: usize) -> usize {
        0
    }

    fn forward(&mut self, _: Pass<'_>, _: &[f32], x: &[f32], y: &mut [f32], _: &mut [f32]) {
        pool(self.window, self.input, x, y);
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
            input_gradient(self.window, self.input, dy, dx);
        }
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
            let mut layer = AvgPoolLayer::new(input, window);
            let (from, to) = (input.len(), output.len());
            check_layer(&mut layer, &Layout::default(), rows, from, to, &definition);
        }
    }
}
