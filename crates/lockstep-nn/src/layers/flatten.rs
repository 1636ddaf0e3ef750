//! An image as one vector, in PyTorch's order: channel after channel, each line by line.
//!
//! Ours has the channels innermost; turned here, the weights of a dense layer that follows mean the same
//! as PyTorch's. With one channel or one pixel there is nothing to turn, and no layer is built. The same
//! layer the other way round makes images, or sequences, which are images of one line, of vectors.

use super::linear::transpose;
use super::{Layer, Pass};
use crate::dims::Dims;
use crate::replica::Replica;

/// Turns pixels of channels into channels of pixels, or the other way round.
pub(crate) struct Flatten {
    /// Numbers of an image.
    size: usize,
    /// How many numbers follow each other in what comes in, and in what goes out.
    inner: [usize; 2],
}

impl Flatten {
    /// From images of this shape to vectors, or nothing where both orders are the same.
    pub(crate) fn new(image: Dims) -> Option<Self> {
        (image.pixels() > 1 && image.channels > 1).then_some(Self {
            size: image.len(),
            inner: [image.channels, image.pixels()],
        })
    }

    /// The other way round: from vectors to images of this shape.
    pub(crate) fn reversed(image: Dims) -> Option<Self> {
        let Self { size, inner } = Self::new(image)?;
        let [channels, pixels] = inner;
        Some(Self {
            size,
            inner: [pixels, channels],
        })
    }
}

impl Layer for Flatten {
    fn scratch(&self, _rows: usize) -> usize {
        0
    }

    fn forward(&mut self, _: Pass<'_>, _: &[f32], x: &[f32], y: &mut [f32], _: &mut [f32]) {
        let images = x.chunks_exact(self.size);
        for (x, y) in images.zip(y.chunks_exact_mut(self.size)) {
            transpose(x, self.inner[0], y);
        }
    }

    fn backward(
        &mut self,
        _: &mut dyn Replica,
        _: &[f32],
        dy: &mut [f32],
        dx: Option<&mut [f32]>,
        _: &mut [f32],
    ) {
        let Some(dx) = dx else { return };
        let images = dy.chunks_exact(self.size);
        for (dy, dx) in images.zip(dx.chunks_exact_mut(self.size)) {
            transpose(dy, self.inner[1], dx);
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
            let mut layer = Flatten::new(input).expect("there is something to turn");
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
        assert!(Flatten::new(image(28, 28, 1)).is_none());
        assert!(Flatten::new(image(1, 1, 512)).is_none());
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
            let mut layer = Flatten::reversed(output).expect("there is something to turn");
            let (layout, size) = (Layout::default(), output.len());
            check_layer(&mut layer, &layout, rows, size, size, &definition);
        }
    }
}
