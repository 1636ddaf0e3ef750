//! Convolution as matrix products over the image where it lies: a window's rows are contiguous runs, so
//! nested loops reach them without a copy of the patches. Only a margin of zeros, where there is one,
//! takes a copy of the image.
//!
//! Threads take some images each, or some lines of one.

use super::super::linear::transpose_on;
use super::super::window::Window;
use super::super::{carve, carved};
use crate::dims::Dims;
use crate::factors::add;
use crate::gemm::{Accumulate, Left, Shape, Span, Walk, nested};
use crate::threads::{SharedMut, Threads, pieces, pieces_mut};
use std::ops::Range;

/// Rows of a product that are enough for the kernels to be read but once in a while.
///
/// It is part of the numerics: the weight gradient adds up images in groups of about so many pixels.
const ROWS: usize = 1024;

/// Columns of a panel of `dy` for the weight gradient, as wide as a register tile of the product.
const PANEL: usize = 32;

/// Rows of the weight gradient whose sums over a group of images wait for those of the groups before.
const BLOCK: usize = 48;

/// Such rows that a thread takes at the least.
const FEWEST_ROWS: usize = 6;

/// Tiles for each thread.
const TILES: usize = 4;

/// Any window, any stride.
pub(super) struct Direct {
    input: Dims,
    output: Dims,
    window: Window,
    /// The image with its margin.
    padded: Dims,
}

/// How images are cut for threads: some whole ones, or each into strips of lines.
#[derive(Clone, Copy)]
struct Strips {
    images: usize,
    /// Images of a tile.
    group: usize,
    /// Strips of an image.
    strips: usize,
    /// Lines of an image.
    lines: usize,
}

impl Strips {
    fn count(self) -> usize {
        self.images.div_ceil(self.group) * self.strips
    }

    /// The images of a tile, and their lines.
    fn tile(self, number: usize) -> (Range<usize>, Range<usize>) {
        let (group, strip) = (number / self.strips, number % self.strips);
        let images = group * self.group..((group + 1) * self.group).min(self.images);
        let place = |strip| strip * self.lines / self.strips;
        (images, place(strip)..place(strip + 1))
    }

    /// Lines of the largest strip.
    fn most_lines(self) -> usize {
        self.lines.div_ceil(self.strips)
    }
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

    /// Numbers of the kernels.
    fn weights(&self) -> usize {
        self.window.area() * self.input.channels * self.output.channels
    }

    /// Numbers of scratch memory for so many images.
    pub(super) fn scratch(&self, threads: &Threads, rows: usize) -> usize {
        // With fewer images there may be more strips, but none is larger.
        let rooms = |strips: Strips, room: usize| threads.rooms(room, rows * strips.lines);
        let forth = self.strips(threads, rows, self.output.height);
        let forth = rooms(forth, self.window_room(forth));
        let back = self.strips(threads, rows, self.input.height);
        let back = carved(self.weights()) + rooms(back, self.pixel_room(back));
        let images = carved(rows * self.padded.len()) + carved(rows * self.output.len());
        forth.max(back).max(images + carved(self.weights()))
    }

    /// How many images are worth a product together.
    fn group(&self) -> usize {
        (ROWS / self.output.pixels()).max(1)
    }

    /// Cuts images of so many lines.
    fn strips(&self, threads: &Threads, images: usize, lines: usize) -> Strips {
        let (images, threads) = (images.max(1), threads.count());
        let (group, strips) = match threads {
            1 => (self.group().min(images), 1),
            threads => {
                let wanted = TILES * threads;
                let group = self.group().min((images / wanted).max(1));
                let strips = if group > 1 {
                    1
                } else {
                    wanted.div_ceil(images)
                };
                (group, strips.min(lines))
            }
        };
        Strips {
            images,
            group,
            strips,
            lines,
        }
    }

    fn has_margin(&self) -> bool {
        self.window.padding != [0, 0]
    }

    /// Numbers of a line of an image with its margin.
    fn padded_line(&self) -> usize {
        self.padded.width * self.padded.channels
    }

    /// Lines of an image with its margin that some lines of the output see.
    fn lines_under(&self, lines: usize) -> usize {
        (lines - 1) * self.window.stride[0] + self.window.kernel[0]
    }

    /// Room for what the windows of a tile see.
    fn window_room(&self, strips: Strips) -> usize {
        strips.group * self.lines_under(strips.most_lines()) * self.padded_line()
    }

    /// Room for the pixels of a tile.
    fn pixel_room(&self, strips: Strips) -> usize {
        strips.group * strips.most_lines() * self.padded_line()
    }

    /// How the places of the windows lie in images with their margin, each of so many numbers.
    fn places(&self, image: usize) -> Walk {
        Walk {
            outer: image,
            middle: self.window.stride[0] * self.padded_line(),
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

    fn outputs(&self, images: usize, lines: usize) -> Span {
        Span {
            outer: images,
            middle: lines,
            inner: self.output.width,
        }
    }

    pub(super) fn forward(
        &self,
        threads: &Threads,
        weight: &[f32],
        bias: Option<&[f32]>,
        x: &[f32],
        y: &mut [f32],
        scratch: &mut [f32],
    ) {
        let channels = self.output.channels;
        let images = x.len() / self.input.len();
        let strips = self.strips(threads, images, self.output.height);
        let depth = Span {
            outer: 1,
            middle: self.window.kernel[0],
            inner: self.window.kernel[1] * self.input.channels,
        };
        let line = Walk {
            outer: 0,
            middle: self.padded_line(),
            inner: 1,
        };
        let line_out = self.output.width * channels;
        let y = SharedMut::new(y);
        let room = match self.has_margin() {
            true => self.window_room(strips),
            false => 0,
        };
        threads.each_in(scratch, room, 0..strips.count(), |room, _, tile| {
            let (images, lines) = strips.tile(tile);
            let first = lines.start * self.window.stride[0];
            let under = first..first + self.lines_under(lines.len());
            let (data, image) = match self.has_margin() {
                true => {
                    let image = under.len() * self.padded_line();
                    let room = &mut room[..images.len() * image];
                    self.pad(x, images.clone(), under, room);
                    (&*room, image)
                }
                false => {
                    let start = images.start * self.input.len() + first * self.padded_line();
                    (&x[start..], self.input.len())
                }
            };
            let start = images.start * self.output.len() + lines.start * line_out;
            let len = (images.len() - 1) * self.output.len() + lines.len() * line_out;
            // SAFETY: tiles are whole images, or lines of one, and do not overlap.
            let y = unsafe { y.part(start..start + len) };
            if let Some(bias) = bias {
                for pixel in y.chunks_exact_mut(channels) {
                    pixel.copy_from_slice(bias);
                }
            }
            let shape = Shape {
                rows: self.outputs(images.len(), lines.len()),
                columns: channels,
                depth,
            };
            let windows = Left {
                data,
                rows: self.places(image),
                depth: line,
            };
            let into = match bias {
                Some(_) => Accumulate::Add,
                None => Accumulate::Replace,
            };
            nested(shape, windows, (weight, channels), y, self.pixels(), into);
        });
    }

    /// Every place of the kernel sends `dy`, times its weights, to the pixels that it was over.
    pub(super) fn input_gradient(
        &self,
        threads: &Threads,
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
            transpose_on(threads, from, outputs, to);
        }
        let images = dx.len() / self.input.len();
        let strips = self.strips(threads, images, self.input.height);
        let line = self.input.width * inputs;
        let dx = SharedMut::new(dx);
        let room = match self.has_margin() {
            true => self.pixel_room(strips),
            false => 0,
        };
        threads.each_in(scratch, room, 0..strips.count(), |room, _, tile| {
            let (images, lines) = strips.tile(tile);
            let start = images.start * self.input.len() + lines.start * line;
            let len = (images.len() - 1) * self.input.len() + lines.len() * line;
            // SAFETY: tiles are whole images, or lines of one, and do not overlap.
            let dx = unsafe { dx.part(start..start + len) };
            let dy = &dy[images.start * self.output.len()..images.end * self.output.len()];
            let above = self.window.padding[0];
            let padded = lines.start + above..lines.end + above;
            if !self.has_margin() {
                return self.scatter(turned, dy, padded, dx);
            }
            let room = &mut room[..images.len() * lines.len() * self.padded_line()];
            self.scatter(turned, dy, padded, room);
            let left = self.window.padding[1] * inputs;
            let from = room.chunks_exact(self.padded_line());
            for (from, to) in from.zip(dx.chunks_exact_mut(line)) {
                to.copy_from_slice(&from[left..left + line]);
            }
        });
    }

    /// Computes the gradient by some lines of some images with their margin.
    fn scatter(&self, turned: &[f32], dy: &[f32], lines: Range<usize>, dx: &mut [f32]) {
        dx.fill(0.0);
        let [inputs, outputs] = [self.input.channels, self.output.channels];
        let images = dy.len() / self.output.len();
        let image = lines.len() * self.padded_line();
        let stride = self.window.stride[0];
        let kernels = turned.chunks_exact(inputs * outputs).enumerate();
        for (place, kernel) in kernels {
            let [row, column] = [place / self.window.kernel[1], place % self.window.kernel[1]];
            // The windows whose place is within these lines.
            let first = lines.start.saturating_sub(row).div_ceil(stride);
            let end = lines.end.saturating_sub(row).div_ceil(stride);
            let windows = first..end.min(self.output.height);
            if windows.is_empty() {
                continue;
            }
            let shape = Shape {
                rows: self.outputs(images, windows.len()),
                columns: inputs,
                depth: Span::flat(outputs),
            };
            let pixels = Left {
                data: &dy[windows.start * self.output.width * outputs..],
                rows: self.pixels(),
                depth: Walk::flat(1),
            };
            let line = windows.start * stride + row - lines.start;
            let to = &mut dx[line * self.padded_line() + column * inputs..];
            let walk = self.places(image);
            nested(shape, pixels, (kernel, inputs), to, walk, Accumulate::Add);
        }
    }

    /// Computes the weight gradient into scratch memory.
    pub(super) fn weight_gradient<'a>(
        &self,
        threads: &Threads,
        x: &[f32],
        dy: &[f32],
        scratch: &'a mut [f32],
    ) -> &'a [f32] {
        let images = x.len() / self.input.len();
        let channels = self.output.channels;
        let (gradient, scratch) = carve(scratch, self.weights());
        let (padded, scratch) = carve(scratch, images * self.padded.len());
        let x = if self.has_margin() {
            let tiles = pieces_mut(padded, self.padded.len());
            threads.each(tiles, |image, padded| {
                self.pad(x, image..image + 1, 0..self.padded.height, padded);
            });
            &*padded
        } else {
            x
        };
        let dy = if channels > PANEL {
            let (panels, _) = carve(scratch, dy.len());
            panel_by_panel(threads, dy, channels, self.output.pixels(), panels);
            &*panels
        } else {
            dy
        };
        // Parts of the lines of the kernel, each a run of rows whose numbers are adjacent in an image.
        let line = self.window.kernel[1] * self.input.channels;
        let panels = channels.div_ceil(PANEL);
        let wanted = match threads.count() {
            1 => 1,
            threads => (TILES * threads).div_ceil(self.window.kernel[0] * panels),
        };
        let parts = wanted
            .min(line.div_ceil(FEWEST_ROWS))
            .max(line.div_ceil(BLOCK));
        let to = SharedMut::new(gradient);
        threads.each(0..self.window.kernel[0] * parts * panels, |_, tile| {
            let (part, panel) = (tile / panels, tile % panels);
            let (kernel_row, part) = (part / parts, part % parts);
            let place = |part| kernel_row * line + part * line / parts;
            // SAFETY: parts and panels do not overlap.
            unsafe { self.block(x, dy, place(part)..place(part + 1), panel * PANEL, &to) };
        });
        gradient
    }

    /// Computes at most [`BLOCK`] rows, which belong to one line of the kernel, of the panel that begins with `column`.
    ///
    /// Every number is a sum over groups of images, in their order. A group's part is one chain of fused
    /// multiply-adds over its images, their rows and columns, which begins at zero. So no chain is long.
    ///
    /// # Safety
    /// Nobody else uses this part of the gradient meanwhile.
    unsafe fn block(
        &self,
        x: &[f32],
        dy: &[f32],
        rows: Range<usize>,
        column: usize,
        gradient: &SharedMut<'_, f32>,
    ) {
        let channels = self.output.channels;
        let line = self.window.kernel[1] * self.input.channels;
        let start = rows.start / line * self.padded_line() + rows.start % line;
        let columns = PANEL.min(channels - column);
        let pixels = self.output.pixels();
        let images = x.len() / self.padded.len();
        let panel = &dy[column * images * pixels..][..columns * images * pixels];
        let mut part = [0.0; BLOCK * PANEL];
        let part = &mut part[..rows.len() * columns];
        let group = self.group();
        for first in (0..images).step_by(group) {
            let count = group.min(images - first);
            let shape = Shape {
                rows: Span::flat(rows.len()),
                columns,
                depth: self.outputs(count, self.output.height),
            };
            let windows = Left {
                data: &x[first * self.padded.len() + start..],
                rows: Walk::flat(1),
                depth: self.places(self.padded.len()),
            };
            let dy = (&panel[first * pixels * columns..], columns);
            let walk = Walk::flat(columns);
            nested(shape, windows, dy, part, walk, Accumulate::Replace);
            for (row, part) in rows.clone().zip(part.chunks_exact(columns)) {
                let at = row * channels + column;
                // SAFETY: by this function's contract.
                let to = unsafe { gradient.part(at..at + columns) };
                match first {
                    0 => to.copy_from_slice(part),
                    _ => add(to, part),
                }
            }
        }
    }

    /// Copies some lines of some images, counted with their margin, to `to`, with their margin.
    fn pad(&self, x: &[f32], images: Range<usize>, lines: Range<usize>, to: &mut [f32]) {
        let width = self.input.width * self.input.channels;
        let left = self.window.padding[1] * self.input.channels;
        let places = images.flat_map(|image| lines.clone().map(move |line| (image, line)));
        for ((image, line), to) in places.zip(to.chunks_exact_mut(self.padded_line())) {
            let line = line.wrapping_sub(self.window.padding[0]);
            if line >= self.input.height {
                to.fill(0.0);
                continue;
            }
            let from = &x[(image * self.input.height + line) * width..][..width];
            to[..left].fill(0.0);
            to[left..left + width].copy_from_slice(from);
            to[left + width..].fill(0.0);
        }
    }
}

/// Lays the columns of a matrix out in panels of [`PANEL`], each contiguous. Threads take so many rows each.
fn panel_by_panel(threads: &Threads, from: &[f32], width: usize, rows: usize, to: &mut [f32]) {
    let height = from.len() / width;
    let to = SharedMut::new(to);
    threads.each(pieces(from, rows * width), |tile, from| {
        for column in (0..width).step_by(PANEL) {
            let columns = PANEL.min(width - column);
            let start = column * height + tile * rows * columns;
            let len = from.len() / width * columns;
            // SAFETY: tiles have other rows, and panels other columns.
            let panel = unsafe { to.part(start..start + len) };
            let rows = from.chunks_exact(width);
            for (from, to) in rows.zip(panel.chunks_exact_mut(columns)) {
                to.copy_from_slice(&from[column..column + columns]);
            }
        }
    });
}
