//! An image as one vector, in PyTorch's order: channel after channel, each line by line.
//!
//! Ours has the channels innermost; turned here, the weights of a dense layer that follows mean the same
//! as PyTorch's. With one channel or one pixel there is nothing to turn, and no layer is built.

use super::linear::transpose;
use super::{Layer, Pass};
use crate::dims::Dims;
use crate::replica::Replica;

/// From pixels of channels to channels of pixels.
pub(crate) struct Flatten {
    input: Dims,
}

impl Flatten {
    /// Of images of this shape, or nothing where both orders are the same.
    pub(crate) fn new(input: Dims) -> Option<Self> {
        (input.pixels() > 1 && input.channels > 1).then_some(Self { input })
    }
}

impl Layer for Flatten {
    fn scratch(&self, _rows: usize) -> usize {
        0
    }

    fn forward(&mut self, _: Pass<'_>, _: &[f32], x: &[f32], y: &mut [f32], _: &mut [f32]) {
        let size = self.input.len();
        for (x, y) in x.chunks_exact(size).zip(y.chunks_exact_mut(size)) {
            transpose(x, self.input.channels, y);
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
        let size = self.input.len();
        for (dy, dx) in dy.chunks_exact(size).zip(dx.chunks_exact_mut(size)) {
            transpose(dy, self.input.pixels(), dx);
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
}
