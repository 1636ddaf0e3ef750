//! An image as one vector, in PyTorch's order: channel after channel, each line by line.
//!
//! Ours has the channels innermost; turned here, the weights of a dense layer that follows mean the same
//! as PyTorch's. With one channel or one pixel there is nothing to turn, and no layer is built. The same
//! layer the other way round makes images, or sequences, which are images of one line, of vectors.

use super::Parameterless;
use super::linear::transpose;
use crate::build::Site;
use crate::chain::Chain;
use crate::dims::Dims;
use crate::error::{LayerFault, NnError};
use crate::graph::{Flow, LayerGraph};
use crate::operation::Operation;
use crate::spec::LayerKind;
use crate::threads::{Threads, pieces, pieces_mut, rows_of_a_tile};

/// The image as one vector, channel after channel, as PyTorch flattens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flatten;

impl LayerKind for Flatten {
    fn build(&self, site: &mut Site<'_>) -> Result<(), NnError> {
        flatten(site.chain);
        Ok(())
    }

    fn write_graph(&self, flow: Flow, graph: &mut LayerGraph<'_>) -> Flow {
        flow.flattened(graph.name, graph.graph)
    }

    fn torch_module(&self) -> String {
        "nn.Flatten()".to_owned()
    }

    fn sample() -> (Dims, Self) {
        (Dims::image(3, 4, 6), Self)
    }
}

/// Makes a vector of the newest activation.
pub(crate) fn flatten(chain: &mut Chain) {
    let input = chain.output();
    let output = Dims::vector(input.len());
    match FlattenLayer::new(input) {
        Some(flatten) => chain.push(Box::new(flatten), output),
        None => chain.reshape(output),
    }
}

/// The settings of the other way round: a vector as an image, channel after channel, as PyTorch unflattens. A sequence is
/// an image of one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unflatten {
    /// The shape of the image.
    pub shape: Dims,
}

impl LayerKind for Unflatten {
    fn build(&self, site: &mut Site<'_>) -> Result<(), NnError> {
        let Site { chain, .. } = site;
        let (shape, input) = (self.shape, chain.output());
        if input.pixels() != 1 || input.len() != shape.len() {
            return Err(LayerFault::Unflatten { shape, input }.of(site.name));
        }
        match FlattenLayer::reversed(shape) {
            Some(unflatten) => chain.push(Box::new(unflatten), shape),
            None => chain.reshape(shape),
        }
        Ok(())
    }

    fn write_graph(&self, flow: Flow, graph: &mut LayerGraph<'_>) -> Flow {
        let shape = self.shape;
        // 0 stands for as many as there are.
        let lengths = [0, shape.channels, shape.height, shape.width].map(|length| length as i64);
        let lengths = graph.graph.integers(&graph.part("shape"), &lengths);
        Flow {
            value: graph.node("Reshape", &[&flow.value, &lengths], &[]),
            dims: self.shape,
            flat: false,
        }
    }

    fn torch_module(&self) -> String {
        let shape = [self.shape.channels, self.shape.height, self.shape.width];
        format!(
            "nn.Unflatten(1, ({}, {}, {}))",
            shape[0], shape[1], shape[2]
        )
    }

    fn sample() -> (Dims, Self) {
        let shape = Dims::image(2, 3, 2);
        (Dims::vector(12), Self { shape })
    }
}

/// Turns pixels of channels into channels of pixels, or the other way round.
pub(crate) struct FlattenLayer {
    /// Numbers of an image.
    size: usize,
    /// How many numbers follow each other in what comes in, and in what goes out.
    inner: [usize; 2],
}

impl FlattenLayer {
    /// From images of this shape to vectors, or nothing where both orders are the same.
    pub(crate) fn new(image: Dims) -> Option<Self> {
        (image.pixels() > 1 && image.channels > 1).then_some(Self {
            size: image.len(),
            inner: [image.channels, image.pixels()],
        })
    }

    /// The other way round: from vectors to images of this shape.
    pub(crate) fn reversed(image: Dims) -> Option<Self> {
        let mut layer = Self::new(image)?;
        layer.inner.reverse();
        Some(layer)
    }
}

impl FlattenLayer {
    /// Transposes images, of which so many numbers follow each other.
    fn turn(&self, threads: &Threads, inner: usize, from: &[f32], to: &mut [f32]) {
        let numbers = rows_of_a_tile(self.size) * self.size;
        let tiles = (pieces(from, numbers), pieces_mut(to, numbers));
        threads.each(tiles, |_, (from, to)| {
            let images = from.chunks_exact(self.size);
            for (from, to) in images.zip(to.chunks_exact_mut(self.size)) {
                transpose(from, inner, to);
            }
        });
    }
}

impl Parameterless for FlattenLayer {
    fn operation(&self) -> Operation {
        Operation::Transpose {
            width: self.inner[0],
            height: self.inner[1],
        }
    }

    fn forward(&mut self, threads: &Threads, x: &[f32], y: &mut [f32]) {
        self.turn(threads, self.inner[0], x, y);
    }

    fn input_gradient(&mut self, threads: &Threads, _: &[f32], dy: &[f32], dx: &mut [f32]) {
        self.turn(threads, self.inner[1], dy, dx);
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

    #[test]
    fn it_agrees_with_finite_differences() {
        for (rows, input) in [
            (1, image(1, 2, 2)),
            (3, image(5, 3, 4)),
            (2, image(4, 5, 19)),
        ] {
            let definition = |_: &[f64], x: &[f64]| {
                let mut y = Vec::new();
                for image in x.chunks(input.len()) {
                    for channel in 0..input.channels {
                        y.extend(image.iter().skip(channel).step_by(input.channels));
                    }
                }
                y
            };
            let mut layer = FlattenLayer::new(input).expect("there is something to turn");
            let size = input.len();
            check_layer(
                &mut layer,
                &Layout::default(),
                rows,
                size,
                size,
                &definition,
            );
        }
    }

    #[test]
    fn one_channel_or_one_pixel_needs_no_turning() {
        assert!(FlattenLayer::new(image(28, 28, 1)).is_none());
        assert!(FlattenLayer::new(image(1, 1, 512)).is_none());
    }

    #[test]
    fn reversed_it_agrees_with_finite_differences() {
        for (rows, [channels, height, width]) in [(1, [2, 1, 2]), (3, [4, 1, 7]), (2, [3, 4, 5])] {
            let output = image(height, width, channels);
            let definition = |_: &[f64], x: &[f64]| {
                let mut y = Vec::new();
                for vector in x.chunks(output.len()) {
                    for pixel in 0..output.pixels() {
                        y.extend(vector.iter().skip(pixel).step_by(output.pixels()));
                    }
                }
                y
            };
            let mut layer = FlattenLayer::reversed(output).expect("there is something to turn");
            let (layout, size) = (Layout::default(), output.len());
            check_layer(&mut layer, &layout, rows, size, size, &definition);
        }
    }
}
