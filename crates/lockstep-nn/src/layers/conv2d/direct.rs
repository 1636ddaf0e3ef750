//! Convolution as matrix products over the image where it lies: a window's rows are contiguous runs, so
//! nested loops reach them without a copy of the patches. Only a margin of zeros, where there is one,
//! takes a copy of the image.

use super::super::linear::transpose;
use super::super::window::Window;
use super::super::{carve, carved};
use crate::dims::Dims;
use crate::factors::add;
use crate::gemm::{Accumulate, Left, Shape, Span, Walk, nested};
use std::ops::Range;

/// Rows of a product that are enough for the kernels to be read but once in a while.
///
/// It is part of the numerics: the weight gradient adds up images in groups of about so many pixels.
const ROWS: usize = 1024;

/// Columns of a panel of `dy` for the weight gradient, as wide as a register tile of the product.
const PANEL: usize = 32;

/// Rows of the weight gradient whose sums over a group of images wait for those of the groups before.
const BLOCK: usize = 48;

/// Any window, any stride.
pub(super) struct Direct {
    input: Dims,
    output: Dims,
    window: Window,
    /// The image with its margin.
    padded: Dims,
}

impl Direct {
    pub(super) fn new(input: Dims, output: Dims, window: Window) -> Self {
        let padded = Dims {
            height: input.height + 2 * window.padding[0],
            width: input.width + 2 * window.padding[1],
            ..input
        };
        Self {
            input,
            output,
            window,
            padded,
        }
    }

    /// Numbers of scratch memory for so many images.
    pub(super) fn scratch(&self, rows: usize) -> usize {
        let group = carved(self.group().min(rows) * self.padded.len());
        let weight = self.window.area() * self.input.channels * self.output.channels;
        let forth = group + carved(weight);
        let back = carved(rows * self.padded.len()) + carved(rows * self.output.len());
        forth.max(back)
    }

    /// How many images are worth a product together.
    fn group(&self) -> usize {
        (ROWS / self.output.pixels()).max(1)
    }

    fn has_margin(&self) -> bool {
        self.window.padding != [0, 0]
    }

    /// How the places of the windows lie in images with their margin.
    fn places(&self) -> Walk {
        let line = self.padded.width * self.padded.channels;
        Walk {
            outer: self.padded.len(),
            middle: self.window.stride[0] * line,
            inner: self.window.stride[1] * self.padded.channels,
        }
    }

    /// How the pixels of output images lie.
    fn pixels(&self) -> Walk {
        Walk {
            outer: self.output.len(),
            middle: self.output.width * self.output.channels,
            inner: self.output.channels,
        }
    }

    fn outputs(&self, images: usize) -> Span {
        Span {
            outer: images,
            middle: self.output.height,
            inner: self.output.width,
        }
    }

    pub(super) fn forward(
        &self,
        weight: &[f32],
        bias: Option<&[f32]>,
        x: &[f32],
        y: &mut [f32],
        scratch: &mut [f32],
    ) {
        let channels = self.output.channels;
        if let Some(bias) = bias {
            for pixel in y.chunks_exact_mut(channels) {
                pixel.copy_from_slice(bias);
            }
        }
        let images = x.len() / self.input.len();
        let group = self.group().min(images.max(1));
        let (padded, _) = carve(scratch, group * self.padded.len());
        padded.fill(0.0);
        let depth = Span {
            outer: 1,
            middle: self.window.kernel[0],
            inner: self.window.kernel[1] * self.input.channels,
        };
        let line = Walk {
            outer: 0,
            middle: self.padded.width * self.input.channels,
            inner: 1,
        };
        let groups = x.chunks(group * self.input.len());
        for (x, y) in groups.zip(y.chunks_mut(group * self.output.len())) {
            let images = x.len() / self.input.len();
            let data = if self.has_margin() {
                self.pad(x, padded);
                &*padded
            } else {
                x
            };
            let shape = Shape {
                rows: self.outputs(images),
                columns: channels,
                depth,
            };
            let windows = Left {
                data,
                rows: self.places(),
                depth: line,
            };
            let into = match bias {
                Some(_) => Accumulate::Add,
                None => Accumulate::Replace,
            };
            nested(shape, windows, (weight, channels), y, self.pixels(), into);
        }
    }

    /// Every place of the kernel sends `dy`, times its weights, to the pixels that it was over.
    pub(super) fn input_gradient(
        &self,
        weight: &[f32],
        dy: &[f32],
        dx: &mut [f32],
        scratch: &mut [f32],
    ) {
        let [inputs, outputs] = [self.input.channels, self.output.channels];
        let (turned, scratch) = carve(scratch, weight.len());
        for (from, to) in weight
            .chunks_exact(inputs * outputs)
            .zip(turned.chunks_exact_mut(inputs * outputs))
        {
            transpose(from, outputs, to);
        }
        let images = dx.len() / self.input.len();
        let group = self.group().min(images.max(1));
        let (padded, _) = carve(scratch, group * self.padded.len());
        let groups = dy.chunks(group * self.output.len());
        for (dy, dx) in groups.zip(dx.chunks_mut(group * self.input.len())) {
            let images = dx.len() / self.input.len();
            if !self.has_margin() {
                self.scatter(turned, dy, images, dx);
                continue;
            }
            let padded = &mut padded[..images * self.padded.len()];
            self.scatter(turned, dy, images, padded);
            for (from, to) in self
                .lines(padded.len())
                .zip(dx.chunks_exact_mut(self.input.width * inputs))
            {
                to.copy_from_slice(&padded[from]);
            }
        }
    }

    fn scatter(&self, turned: &[f32], dy: &[f32], images: usize, dx: &mut [f32]) {
        dx.fill(0.0);
        let [inputs, outputs] = [self.input.channels, self.output.channels];
        let kernels = turned.chunks_exact(inputs * outputs).enumerate();
        for (place, kernel) in kernels {
            let [row, column] = [place / self.window.kernel[1], place % self.window.kernel[1]];
            let at = (row * self.padded.width + column) * inputs;
            let shape = Shape {
                rows: self.outputs(images),
                columns: inputs,
                depth: Span::flat(outputs),
            };
            let pixels = Left {
                data: dy,
                rows: self.pixels(),
                depth: Walk::flat(1),
            };
            let to = &mut dx[at..];
            nested(
                shape,
                pixels,
                (kernel, inputs),
                to,
                self.places(),
                Accumulate::Add,
            );
        }
    }

    /// Gets ready to compute the weight gradient, some rows at a time.
    pub(super) fn weight_gradient<'a>(
        &'a self,
        x: &'a [f32],
        dy: &'a [f32],
        scratch: &'a mut [f32],
    ) -> DirectWeightGradient<'a> {
        let images = x.len() / self.input.len();
        let (padded, scratch) = carve(scratch, images * self.padded.len());
        let x = if self.has_margin() {
            padded.fill(0.0);
            self.pad(x, padded);
            &*padded
        } else {
            x
        };
        let channels = self.output.channels;
        let dy = if channels > PANEL {
            let (panels, _) = carve(scratch, dy.len());
            panel_by_panel(dy, channels, panels);
            &*panels
        } else {
            dy
        };
        DirectWeightGradient {
            method: self,
            images,
            x,
            dy,
        }
    }

    /// Copies images into the margin that lies ready in `padded`.
    fn pad(&self, x: &[f32], padded: &mut [f32]) {
        let images = x.len() / self.input.len();
        let width = self.input.width * self.input.channels;
        for (to, from) in self
            .lines(images * self.padded.len())
            .zip(x.chunks_exact(width))
        {
            padded[to].copy_from_slice(from);
        }
    }

    /// Where the images' lines lie inside the margin, in `len` numbers of padded images.
    fn lines(&self, len: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let Self {
            input,
            padded,
            window,
            ..
        } = *self;
        (0..len / padded.len()).flat_map(move |image| {
            (0..input.height).map(move |line| {
                let row = image * padded.height + window.padding[0] + line;
                let start = (row * padded.width + window.padding[1]) * input.channels;
                start..start + input.width * input.channels
            })
        })
    }
}

/// A weight gradient that is computed some rows at a time.
pub(super) struct DirectWeightGradient<'a> {
    method: &'a Direct,
    images: usize,
    /// The images with their margin.
    x: &'a [f32],
    /// The output's gradient, panel by panel.
    dy: &'a [f32],
}

impl DirectWeightGradient<'_> {
    /// Computes some rows of the gradient.
    pub(super) fn fill(&self, rows: Range<usize>, gradient: &mut [f32]) {
        let channels = self.method.output.channels;
        // A run of rows whose numbers are adjacent in an image: one line of the kernel.
        let line = self.method.window.kernel[1] * self.method.input.channels;
        let mut row = rows.start;
        while row < rows.end {
            let count = (line - row % line).min(rows.end - row).min(BLOCK);
            for column in (0..channels).step_by(PANEL) {
                let to = &mut gradient[(row - rows.start) * channels + column..];
                self.block(row..row + count, column, to);
            }
            row += count;
        }
    }

    /// Computes at most [`BLOCK`] rows, which belong to one line of the kernel, of the panel that begins with `column`.
    ///
    /// Every number is a sum over groups of images, in their order. A group's part is one chain of fused
    /// multiply-adds over its images, their rows and columns, which begins at zero. So no chain is long, and groups
    /// can be computed beside each other.
    fn block(&self, rows: Range<usize>, column: usize, to: &mut [f32]) {
        let method = self.method;
        let channels = method.output.channels;
        let line = method.window.kernel[1] * method.input.channels;
        let start = rows.start / line * method.padded.width * method.input.channels;
        let start = start + rows.start % line;
        let columns = PANEL.min(channels - column);
        let pixels = method.output.pixels();
        let panel = &self.dy[column * self.images * pixels..][..columns * self.images * pixels];
        let mut part = [0.0; BLOCK * PANEL];
        let part = &mut part[..rows.len() * columns];
        let group = method.group();
        for first in (0..self.images).step_by(group) {
            let images = group.min(self.images - first);
            let shape = Shape {
                rows: Span::flat(rows.len()),
                columns,
                depth: method.outputs(images),
            };
            let windows = Left {
                data: &self.x[first * method.padded.len() + start..],
                rows: Walk::flat(1),
                depth: method.places(),
            };
            let dy = (&panel[first * pixels * columns..], columns);
            if first == 0 {
                let walk = Walk::flat(channels);
                nested(shape, windows, dy, to, walk, Accumulate::Replace);
                continue;
            }
            let walk = Walk::flat(columns);
            nested(shape, windows, dy, part, walk, Accumulate::Replace);
            for (to, part) in to.chunks_mut(channels).zip(part.chunks_exact(columns)) {
                add(&mut to[..columns], part);
            }
        }
    }
}

/// Lays the columns of a matrix out in panels of [`PANEL`], each contiguous.
fn panel_by_panel(from: &[f32], width: usize, to: &mut [f32]) {
    let height = from.len() / width;
    for column in (0..width).step_by(PANEL) {
        let columns = PANEL.min(width - column);
        let panel = &mut to[column * height..][..columns * height];
        let rows = from.chunks_exact(width);
        for (from, to) in rows.zip(panel.chunks_exact_mut(columns)) {
            to.copy_from_slice(&from[column..column + columns]);
        }
    }
}
