//! A convolution of each channel by itself, for inference, with ReLU6 after it.
//!
//! Vectors run across channels. A tile is a few neighbouring pixels of one line of the output: their
//! windows overlap, so that each pixel of the input is loaded once a line of the kernel, into registers.
//! A window's part outside of the picture is zeros, so every output is one chain over its whole window.

use super::lite::LiteConvolution;
use super::parts::WindowParts;
use crate::buffer::Buffer;
use crate::dims::Dims;
use crate::gemm::{Kernel, Vector, dispatch};
use crate::threads::{Threads, pieces_mut, rows_of_a_tile};

/// Pixels of a tile: divides the widths 7, 14, 28, 56 and 112.
const TILE: usize = 7;

/// The convolution of one kind of picture.
pub(super) struct Depthwise {
    input: Dims,
    output: Dims,
    kernel: usize,
    stride: usize,
    /// Rows and columns of zeros above and left of the picture.
    margin: [usize; 2],
    /// A kernel's pixels, line by line, x channels.
    weight: Buffer,
    bias: Buffer,
}

/// The rows or columns of an output with TensorFlow's "same" margin, and the margin before the first.
pub(super) fn same(input: usize, kernel: usize, stride: usize) -> (usize, usize) {
    let output = input.div_ceil(stride);
    let margin = ((output - 1) * stride + kernel).saturating_sub(input);
    (output, margin / 2)
}

impl Depthwise {
    /// Windows of 3 x 3 or 5 x 5 pixels, 1 or 2 apart, with TensorFlow's "same" margin.
    pub(super) fn new(input: Dims, shape: LiteConvolution, parts: &WindowParts) -> Self {
        let LiteConvolution { kernel, stride, .. } = shape;
        let (height, top) = same(input.height, kernel, stride);
        let (width, left) = same(input.width, kernel, stride);
        Self {
            input,
            output: Dims {
                height,
                width,
                ..input
            },
            kernel,
            stride,
            margin: [top, left],
            weight: parts.weight[..].into(),
            bias: parts.bias[..].into(),
        }
    }

    /// The shape of what it makes.
    pub(super) fn output(&self) -> Dims {
        self.output
    }

    /// Computes pictures.
    pub(super) fn run(&self, threads: &Threads, x: &[f32], y: &mut [f32]) {
        let line = self.output.width * self.output.channels;
        // Lines of the output, of all pictures.
        let lines = rows_of_a_tile(line);
        threads.each(pieces_mut(y, lines * line), |tile, y| {
            let mut first = tile * lines;
            let mut rest = y;
            while !rest.is_empty() {
                let (picture, row) = (first / self.output.height, first % self.output.height);
                let count = (rest.len() / line).min(self.output.height - row);
                let (y, others) = rest.split_at_mut(count * line);
                let x = &x[picture * self.input.len()..][..self.input.len()];
                self.lines(x, row, y);
                (first, rest) = (first + count, others);
            }
        });
    }

    /// Computes lines of one picture, from `first` on.
    fn lines(&self, x: &[f32], first: usize, y: &mut [f32]) {
        let layer = self;
        match (self.kernel, self.stride) {
            (3, 1) => dispatch(Lines::<3, 1, 9> { layer, x, first, y }),
            (3, 2) => dispatch(Lines::<3, 2, 15> { layer, x, first, y }),
            (5, 1) => dispatch(Lines::<5, 1, 11> { layer, x, first, y }),
            (5, 2) => dispatch(Lines::<5, 2, 17> { layer, x, first, y }),
            (kernel, stride) => unreachable!("a kernel of {kernel}, {stride} apart"),
        }
    }
}

/// Lines of one picture, of which the first has this number, with a kernel of `K` x `K` pixels, `S` apart; a tile's line
/// reads `R` pixels.
struct Lines<'a, const K: usize, const S: usize, const R: usize> {
    layer: &'a Depthwise,
    x: &'a [f32],
    first: usize,
    y: &'a mut [f32],
}

impl<const K: usize, const S: usize, const R: usize> Kernel for Lines<'_, K, S, R> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        const { assert!(R == (TILE - 1) * S + K, "a tile reads as many pixels") };
        let Depthwise {
            input,
            output,
            margin,
            ..
        } = *self.layer;
        let channels = input.channels;
        let lines = self.y.chunks_exact_mut(output.width * channels);
        for (row, y) in (self.first..output.height).zip(lines) {
            let mut channel = 0;
            while channel < channels {
                let count = V::LANES.min(channels - channel);
                let mut column = 0;
                while column < output.width {
                    // A tile is inside when neither its windows nor itself reach over the picture.
                    let first = column * S;
                    let inside = first >= margin[1]
                        && first - margin[1] + R <= input.width
                        && column + TILE <= output.width
                        && count == V::LANES;
                    let at = Tile {
                        row,
                        column,
                        channel,
                        count,
                    };
                    // SAFETY: `at` is inside of the output; `inside` was found for this tile.
                    unsafe {
                        match inside {
                            true => tile::<V, K, S, R, true>(self.layer, self.x, y, at),
                            false => tile::<V, K, S, R, false>(self.layer, self.x, y, at),
                        }
                    }
                    column += TILE;
                }
                channel += V::LANES;
            }
        }
    }
}

/// Where a tile lies in the output, and how many channels it has.
#[derive(Clone, Copy)]
struct Tile {
    row: usize,
    column: usize,
    channel: usize,
    count: usize,
}

/// Computes a tile.
///
/// # Safety
/// `x` is one picture of the layer's, `y` a line of its output; the tile begins inside of `y` and its channels are there.
/// With `INSIDE` it also ends there, has a whole vector of channels, and its windows' columns are all in
/// `x`.
#[inline(always)]
unsafe fn tile<V: Vector, const K: usize, const S: usize, const R: usize, const INSIDE: bool>(
    layer: &Depthwise,
    x: &[f32],
    y: &mut [f32],
    at: Tile,
) {
    let Depthwise {
        input,
        output,
        margin,
        ..
    } = *layer;
    let channels = input.channels;
    // SAFETY: every load is of `count` channels of a pixel that is inside of `x`, of the kernel or of the
    // bias, and every store to a pixel inside of `y`: rows are checked, columns by `INSIDE` or one by one.
    unsafe {
        let load = |p: *const f32| match INSIDE {
            true => V::load(p),
            false => V::load_first(p, at.count),
        };
        let mut sums = [load(layer.bias.as_ptr().add(at.channel)); TILE];
        for line in 0..K {
            let row = (at.row * S + line).wrapping_sub(margin[0]);
            if row >= input.height {
                continue;
            }
            let from = x.as_ptr().add(row * input.width * channels + at.channel);
            let mut pixels = [V::zero(); R];
            for (i, pixel) in pixels.iter_mut().enumerate() {
                let column = (at.column * S + i).wrapping_sub(margin[1]);
                if INSIDE || column < input.width {
                    *pixel = load(from.add(column * channels));
                }
            }
            for place in 0..K {
                let weight = layer.weight.as_ptr();
                let weight = load(weight.add((line * K + place) * channels + at.channel));
                for (i, sum) in sums.iter_mut().enumerate() {
                    *sum = sum.fma(pixels[i * S + place], weight);
                }
            }
        }
        let to = y.as_mut_ptr().add(at.column * channels + at.channel);
        for (i, sum) in sums.iter().enumerate() {
            if INSIDE || at.column + i < output.width {
                let p = to.add(i * channels);
                match INSIDE {
                    true => sum.clamp(0.0, 6.0).store(p),
                    false => sum.clamp(0.0, 6.0).store_first(p, at.count),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition: one chain a number, over the picture with its margin of zeros.
    fn reference(layer: &Depthwise, x: &[f32]) -> Vec<f32> {
        let (input, output, k) = (layer.input, layer.output, layer.kernel);
        let mut y = Vec::new();
        for row in 0..output.height {
            for column in 0..output.width {
                for c in 0..input.channels {
                    let mut sum = layer.bias[c];
                    for place in 0..k * k {
                        let r = (row * layer.stride + place / k).wrapping_sub(layer.margin[0]);
                        let i = (column * layer.stride + place % k).wrapping_sub(layer.margin[1]);
                        let weight = layer.weight[place * input.channels + c];
                        if r < input.height {
                            let inside = i < input.width;
                            let at = (r * input.width + i.min(input.width - 1)) * input.channels;
                            let x = if inside { x[at + c] } else { 0.0 };
                            sum = x.mul_add(weight, sum);
                        }
                    }
                    y.push(sum.clamp(0.0, 6.0));
                }
            }
        }
        y
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_picture_gives_the_bits_of_the_definition(
            height in 1usize..20, width in 1usize..34, channels in 1usize..40,
            five: bool, two: bool,
        ) {
            let (kernel, stride) = (if five { 5 } else { 3 }, if two { 2 } else { 1 });
            let mut stream = lockstep_base::random::Stream::new(3, 0);
            let mut numbers = |len| -> Vec<f32> { (0..len).map(|_| 2.0 * stream.unit_f32() - 0.7).collect() };
            let input = Dims { height, width, channels };
            let shape = LiteConvolution { kernel, stride, margin: [0; 2] };
            let parts = WindowParts {
                weight: numbers(channels * kernel * kernel),
                bias: numbers(channels),
            };
            let layer = Depthwise::new(input, shape, &parts);
            let x = numbers(input.len());
            let mut y = vec![f32::NAN; layer.output().len()];
            layer.run(&Threads::default(), &x, &mut y);
            prop_assert_eq!(y, reference(&layer, &x));
        }
    }

    #[test]
    fn margins_are_tensorflows() {
        assert_eq!(same(224, 3, 2), (112, 0));
        assert_eq!(same(112, 3, 1), (112, 1));
        assert_eq!(same(56, 5, 2), (28, 1));
        assert_eq!(same(14, 5, 1), (14, 2));
        assert_eq!(same(15, 5, 2), (8, 2));
    }
}
