//! The average of each channel over all pixels: an image becomes a vector.

use super::Parameterless;
use super::columns::{for_columns, group, group_mut};
use crate::NnError;
use crate::build::Site;
use crate::dims::Dims;
use crate::graph::{Flow, LayerGraph};
use crate::operation::Operation;
use crate::simd::for_each_isa;
use crate::spec::LayerKind;
use crate::threads::{Threads, pieces, pieces_mut, rows_of_a_tile};

/// The mean of the image, channel by channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GlobalPool;

impl LayerKind for GlobalPool {
    fn build(&self, site: &mut Site<'_>) -> Result<(), NnError> {
        let input = site.chain.output();
        let pool = Box::new(GlobalPoolLayer { input });
        site.chain.push(pool, Dims::vector(input.channels));
        Ok(())
    }

    fn write_graph(&self, flow: Flow, graph: &mut LayerGraph<'_>) -> Flow {
        let flow = graph.as_image(flow);
        let pooled = Flow {
            value: graph.node("GlobalAveragePool", &[&flow.value], &[]),
            dims: graph.output,
            ..flow
        };
        graph.flattened("flatten", pooled)
    }

    fn torch_module(&self) -> String {
        "nn.AdaptiveAvgPool2d(1)".to_owned()
    }

    fn sample() -> (Dims, Self) {
        (Dims::image(3, 4, 6), Self)
    }
}

/// Average-pooling over whole images.
pub(crate) struct GlobalPoolLayer {
    input: Dims,
}

impl Parameterless for GlobalPoolLayer {
    fn operation(&self) -> Operation {
        Operation::GlobalPool { input: self.input }
    }

    fn forward(&mut self, threads: &Threads, x: &[f32], y: &mut [f32]) {
        let (input, images) = (self.input, rows_of_a_tile(self.input.len()));
        let from = pieces(x, images * input.len());
        let tiles = (from, pieces_mut(y, images * input.channels));
        threads.each(tiles, |_, (x, y)| pool(input, x, y));
    }

    fn input_gradient(&mut self, threads: &Threads, _: &[f32], dy: &[f32], dx: &mut [f32]) {
        let (input, images) = (self.input, rows_of_a_tile(self.input.len()));
        let from = pieces(dy, images * input.channels);
        let tiles = (from, pieces_mut(dx, images * input.len()));
        threads.each(tiles, |_, (dy, dx)| input_gradient(input, dy, dx));
    }
}

for_each_isa! {
    fn pool(input: Dims, x: &[f32], y: &mut [f32]) {
        let channels = input.channels;
        let share = 1.0 / input.pixels() as f32;
        for (x, y) in x.chunks_exact(input.len()).zip(y.chunks_exact_mut(channels)) {
            for_columns!(channels, |at, W| {
                let mut sum = [0.0; W];
                // Line by line: single precision does not add up a large image in a row.
                for line in x.chunks_exact(input.width * channels) {
                    let mut part = [0.0; W];
                    for pixel in line.chunks_exact(channels) {
                        let x = group::<W>(pixel, at);
                        for k in 0..W {
                            part[k] += x[k];
                        }
                    }
                    for k in 0..W {
                        sum[k] += part[k];
                    }
                }
                *group_mut(y, at) = sum.map(|sum| sum * share);
            });
        }
    }

    fn input_gradient(input: Dims, dy: &[f32], dx: &mut [f32]) {
        let channels = input.channels;
        let share = 1.0 / input.pixels() as f32;
        for (dy, dx) in dy.chunks_exact(channels).zip(dx.chunks_exact_mut(input.len())) {
            for pixel in dx.chunks_exact_mut(channels) {
                for (dx, &dy) in pixel.iter_mut().zip(dy) {
                    *dx = dy * share;
                }
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
        for (rows, height, width, channels) in [(1, 1, 1, 1), (3, 1, 1, 7), (2, 5, 3, 41)] {
            let input = Dims {
                height,
                width,
                channels,
            };
            let definition = |_: &[f64], x: &[f64]| {
                let mut y = vec![0.0; rows * channels];
                for (at, x) in x.iter().enumerate() {
                    let row = at / input.len();
                    y[row * channels + at % channels] += x / input.pixels() as f64;
                }
                y
            };
            let mut layer = GlobalPoolLayer { input };
            let from = input.len();
            check_layer(
                &mut layer,
                &Layout::default(),
                rows,
                from,
                channels,
                &definition,
            );
        }
    }
}
