//! The output of a convolution, and its gradient by the input: sums over what windows see.
//!
//! What a window sees of a line lies in one piece. The gradient by the input is the same over errors, with the kernels
//! turned round; where windows move by several pixels, the pixels of the input fall into classes, each of which meets its
//! own part of the kernels. Every line of a kernel is filled up to whole blocks with zeros, so it does not matter what
//! lies behind what a window sees.

use super::super::block::{COLUMNS, DEPTH, Left};
use super::super::cast::{bytes, words_mut};
use super::super::grid::{PixelGrid, Target};
use super::super::product::Product;
use super::super::right::{Matrix, Turned, depths, pack, pack_turned, right_room};
use super::super::scale::Scale;
use super::{Shape, SlicedImages};
use crate::threads::{SharedMut, Threads, pieces_mut};

/// Sums over what windows see, for some pixels of what comes out.
pub(super) struct Windows {
    target: Target,
    /// Places of the kernel, line by line.
    lines: Vec<Vec<usize>>,
    /// Where each 64 numbers lie that a window sees.
    offsets: Vec<usize>,
    /// Numbers of a pixel that is seen, and of one that comes out.
    channels: [usize; 2],
    /// Whether kernels are turned round.
    is_turned: bool,
}

impl Windows {
    /// Lines come with the byte where each begins, in ascending order.
    fn new(
        target: Target,
        channels: usize,
        lines: Vec<(usize, Vec<usize>)>,
        is_turned: bool,
    ) -> Self {
        let mut offsets = Vec::new();
        for (begin, places) in &lines {
            let blocks = 0..depths(places.len() * channels);
            offsets.extend(blocks.map(|block| begin + block * DEPTH));
        }
        Self {
            target,
            lines: lines.into_iter().map(|(_, places)| places).collect(),
            offsets,
            channels: [channels, target.image.channels],
            is_turned,
        }
    }

    /// The windows of the output.
    pub(super) fn forward(shape: &Shape, input: &PixelGrid) -> Self {
        let [height, width] = shape.window.kernel;
        let line = |line| {
            let places = line * width..(line + 1) * width;
            (input.offset(line, 0), places.collect())
        };
        let mut lines: Vec<(usize, Vec<usize>)> = (0..height).map(line).collect();
        lines.sort();
        let target = Target {
            image: shape.output,
            first: [0; 2],
            step: [1; 2],
        };
        Self::new(target, shape.input.channels, lines, false)
    }

    /// Those of the gradient by the input: one for each class of pixels.
    pub(super) fn back(shape: &Shape, errors: &PixelGrid) -> Vec<Self> {
        let Shape { window, axes, .. } = shape;
        let [vertical, horizontal] = axes;
        let mut all = Vec::new();
        for down in &vertical.classes {
            for right in &horizontal.classes {
                let target = Target {
                    image: shape.input,
                    first: [down.pixel, right.pixel],
                    step: window.stride,
                };
                let is_met = down.count > 0 && right.count > 0;
                // The last place of the kernel meets the first error.
                let columns = (0..right.count).rev();
                let columns = columns.map(|i| right.place + i * window.stride[1]);
                let columns: Vec<usize> = columns.collect();
                let line = |i: usize| {
                    let place = down.place + i * window.stride[0];
                    let begin = errors.offset(
                        vertical.lead + down.error - i,
                        horizontal.lead + right.error + 1 - right.count,
                    );
                    let places = columns.iter();
                    let places = places.map(|column| place * window.kernel[1] + column);
                    (begin, places.collect())
                };
                let lines = if is_met { 0..down.count } else { 0..0 };
                let lines = lines.rev().map(line).collect();
                all.push(Self::new(target, shape.output.channels, lines, true));
            }
        }
        all
    }

    /// Numbers of memory for the kernels.
    pub(super) fn room(&self) -> usize {
        right_room(self.offsets.len() * DEPTH, self.channels[1])
    }

    /// Computes their outputs. Each is written where its pixel lies.
    pub(super) fn compute(
        &self,
        threads: &Threads,
        source: &SlicedImages<'_>,
        (kernels, scale): (&[f32], Scale),
        bias: Option<&[f32]>,
        to: &SharedMut<'_, f32>,
        right: &mut [f32],
    ) {
        let [_, columns] = self.channels;
        let depth = self.offsets.len() * DEPTH;
        let right = &mut right[..self.room()];
        let pairs = pieces_mut(words_mut(right), right_room(depth, COLUMNS).max(1));
        threads.each(pairs, |pair, to| {
            self.pack(kernels, pair * COLUMNS, scale, to)
        });
        let product = Product {
            left: Left {
                upper: source.slices[0],
                lower: source.slices[1],
                stride: source.grid.stride(),
            },
            offsets: Some(&self.offsets),
            row_scales: source.scales,
            rows_of_scale: source.grid.places_of_image(),
            rows: source.scales.len() * source.grid.places_of_image(),
            right: bytes(right),
            right_scale: scale,
            columns,
            depth,
        };
        let place = |row, places: &mut [usize]| source.grid.pixels(row, self.target, places);
        // SAFETY: `to` is borrowed mutably, and every pixel is at one place.
        unsafe { product.compute(threads, bias, to, place) };
    }

    /// Packs a pair of columns of the kernels, line by line.
    fn pack(&self, kernels: &[f32], column: usize, scale: Scale, to: &mut [u32]) {
        let [inputs, outputs] = self.channels;
        let of_place = inputs * outputs;
        let length = to.len() / self.lines.len().max(1);
        for (places, to) in self.lines.iter().zip(to.chunks_exact_mut(length.max(1))) {
            if self.is_turned {
                let turned = Turned {
                    data: kernels,
                    places,
                    rows: outputs,
                    columns: inputs,
                };
                pack_turned(turned, column, scale.by(), to);
            } else {
                let first = places[0] * of_place;
                let line = &kernels[first..first + places.len() * of_place];
                let matrix = Matrix::new(line, outputs).columns(column, COLUMNS);
                pack(matrix, scale.by(), to);
            }
        }
    }
}
