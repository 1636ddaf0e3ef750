//! A vector as an image or a sequence, in PyTorch's order: channel after channel, each line by line. The other way round
//! than [`flatten`](super::flatten).

use super::linear::transpose;
use super::{Layer, Pass};
use crate::dims::Dims;
use crate::replica::Replica;

/// From channels of pixels to pixels of channels.
pub(crate) struct Unflatten {
    output: Dims,
}

impl Unflatten {
    /// To images of this shape, or nothing where both orders are the same.
    pub(crate) fn new(output: Dims) -> Option<Self> {
        (output.pixels() > 1 && output.channels > 1).then_some(Self { output })
    }
}

impl Layer for Unflatten {
    fn scratch(&self, _rows: usize) -> usize {
        0
    }

    fn forward(&mut self, _: Pass<'_>, _: &[f32], x: &[f32], y: &mut [f32], _: &mut [f32]) {
        let size = self.output.len();
        for (x, y) in x.chunks_exact(size).zip(y.chunks_exact_mut(size)) {
            transpose(x, self.output.pixels(), y);
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
        let size = self.output.len();
        for (dy, dx) in dy.chunks_exact(size).zip(dx.chunks_exact_mut(size)) {
            transpose(dy, self.output.channels, dx);
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
        for (rows, [channels, height, width]) in [(1, [2, 1, 2]), (3, [4, 1, 7]), (2, [3, 4, 5])] {
            let output = Dims {
                height,
                width,
                channels,
            };
            let definition = |_: &[f64], x: &[f64]| {
                let mut y = Vec::new();
                for vector in x.chunks(output.len()) {
                    for pixel in 0..output.pixels() {
                        y.extend(vector.iter().skip(pixel).step_by(output.pixels()));
                    }
                }
                y
            };
            let mut layer = Unflatten::new(output).expect("there is something to turn");
            let (layout, size) = (Layout::default(), output.len());
            check_layer(&mut layer, &layout, rows, size, size, &definition);
        }
    }
}
