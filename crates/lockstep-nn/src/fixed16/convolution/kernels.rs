//! The gradient by the kernels: for each of their numbers one sum over all windows of a lane.
//!
//! Windows are the depth. What they see at a place of the kernel is turned into rows, one for each channel: a *band*. What
//! they see at the other places are the same rows, moved by some windows. Where there are few channels, a band has those
//! of a whole line of the kernel, so that blocks are full.

use super::super::block::{COLUMNS, DEEPEST, DEPTH, Left, ROWS, Session};
use super::super::cast::{bytes, bytes_mut, totals_mut, words_mut};
use super::super::engine::Engine;
use super::super::grid::PixelGrid;
use super::super::product::{BLOCKS, Product, Totals, Turn, apart};
use super::super::right::{pack_slices, right_room, tiles};
use super::super::transpose::transpose_bytes;
use super::{Shape, SlicedImages};
use crate::layers::{carve, carved};
use crate::threads::{SharedMut, Threads, pieces_mut};
use std::ops::Range;

/// Bytes of the slices that are multiplied together, which stay in the second-level cache. In tests there are fewer, so
/// that small images need several turns.
const OPERANDS: usize = if cfg!(test) { 16 } else { 1280 } * 1024;

/// So many windows are multiplied together in any case: sums that are put aside take memory too.
const AT_ONCE: usize = if cfg!(test) { DEPTH } else { 2048 };

/// Rows that one thread computes at a time.
const GROUP: usize = BLOCKS * ROWS;

/// What windows see at some places of the kernel.
#[derive(Debug, Clone, Copy)]
struct Band {
    /// The byte of a slice that the first window sees first.
    begin: usize,
    /// The first of its rows, of those of all bands. There are whole blocks of them.
    row: usize,
}

/// Rows of the kernels' matrix.
#[derive(Debug, Clone, Copy)]
struct Task {
    /// The first row of them among those of the bands, and by how many windows these are moved.
    row: usize,
    moved: usize,
    /// The first row of the kernels' matrix, and how many.
    first: usize,
    count: usize,
    /// The number of its first block, of those of all tasks.
    block: usize,
}

/// How the gradient is computed.
pub(super) struct KernelGradient {
    bands: Vec<Band>,
    /// Rows of all bands.
    rows: usize,
    tasks: Vec<Task>,
    /// Blocks of rows of all tasks.
    blocks: usize,
    /// By how many windows rows are moved at the most.
    reach: usize,
    channels: usize,
}

impl KernelGradient {
    pub(super) fn new(shape: &Shape, input: &PixelGrid) -> Self {
        let (window, inputs) = (shape.window, shape.input.channels);
        let [height, width] = window.kernel;
        let [down, right] = window.stride;
        // Few channels: a band is a whole line of the kernel.
        let columns = if inputs < ROWS { 1 } else { width };
        let numbers = width / columns * inputs;
        let of_line = right.min(columns);
        let rows_of_band = numbers.next_multiple_of(ROWS);
        let bands = (0..down.min(height) * of_line).map(|band| Band {
            begin: input.offset(band / of_line, band % of_line),
            row: band * rows_of_band,
        });
        let bands: Vec<Band> = bands.collect();
        let (mut tasks, mut blocks, mut reach) = (Vec::new(), 0, 0);
        for place in 0..height * columns {
            let (line, column) = (place / columns, place % columns);
            let band = bands[line % down * of_line + column % right.min(columns)];
            let moved = line / down * input.pitch() + column / right;
            reach = reach.max(moved);
            for first in (0..numbers).step_by(GROUP) {
                let count = GROUP.min(numbers - first);
                tasks.push(Task {
                    row: band.row + first,
                    moved,
                    first: place * numbers + first,
                    count,
                    block: blocks,
                });
                blocks += count.div_ceil(ROWS);
            }
        }
        Self {
            rows: bands.len() * rows_of_band,
            bands,
            tasks,
            blocks,
            reach,
            channels: shape.output.channels,
        }
    }

    /// The most windows that are multiplied together.
    fn most_at_once(&self) -> usize {
        let most = OPERANDS / (2 * (self.rows + self.channels));
        let most = most.clamp(AT_ONCE, DEEPEST);
        most.next_multiple_of(DEPTH)
    }

    /// How many of so many are.
    fn at_once(&self, windows: usize) -> usize {
        let turns = windows.div_ceil(self.most_at_once()).max(1);
        windows.div_ceil(turns).next_multiple_of(DEPTH)
    }

    /// Numbers of a row of a band, for so many windows.
    fn seen(&self, windows: usize) -> usize {
        (windows.next_multiple_of(DEPTH) + self.reach).next_multiple_of(DEPTH)
    }

    /// Bytes from a row of the bands to the next: an odd number of cache lines, so that rows do not displace each other.
    fn stride(&self, windows: usize) -> usize {
        self.seen(windows).next_multiple_of(2 * DEPTH) + DEPTH
    }

    /// Numbers of scratch memory for at most so many windows.
    pub(super) fn scratch(&self, windows: usize) -> usize {
        let at_once = windows.next_multiple_of(DEPTH).min(self.most_at_once());
        let blocks = self.blocks * self.channels.div_ceil(COLUMNS);
        let totals = Totals::room(if at_once < windows { blocks } else { 0 });
        carved(right_room(at_once, self.channels))
            + 2 * carved(self.rows * self.stride(at_once) / 4)
            + carved(totals)
    }

    /// Computes the gradient of one lane: that of some images. Errors have as many places as windows.
    pub(super) fn compute(
        &self,
        threads: &Threads,
        (x, dy): (&SlicedImages<'_>, &SlicedImages<'_>),
        images: Range<usize>,
        lead: usize,
        gradient: &mut [f32],
        scratch: &mut [f32],
    ) {
        let channels = self.channels;
        let [begin, end] = [images.start, images.end].map(|image| image * x.grid.places_of_image());
        let at_once = self.at_once(end - begin);
        let stride = self.stride(at_once);
        let (right, scratch) = carve(scratch, right_room(at_once, channels));
        let (upper, scratch) = carve(scratch, self.rows * stride / 4);
        let (lower, totals) = carve(scratch, self.rows * stride / 4);
        let totals = SharedMut::new(totals_mut(totals));
        let gradient = SharedMut::new(gradient);
        for start in (begin..end).step_by(at_once) {
            let count = at_once.min(end - start);
            let right = &mut right[..right_room(count, channels)];
            let pairs = pieces_mut(words_mut(right), right_room(count, COLUMNS));
            threads.each(pairs, |pair, to| {
                let column = pair * COLUMNS;
                let at = (lead + start) * channels + column;
                let slices = dy.slices.map(|slice| &slice[at..]);
                pack_slices(slices, channels, count, tiles(column, channels), to);
            });
            self.turn_images(
                threads,
                x,
                (start, count),
                stride,
                [&mut *upper, &mut *lower],
            );
            let left = Left {
                upper: bytes(upper),
                lower: bytes(lower),
                stride,
            };
            threads.each(0..self.tasks.len(), |_, task| {
                let task = self.tasks[task];
                let product = Product {
                    left: left.at(task.row, task.moved),
                    offsets: None,
                    row_scales: &x.scales[images.start..=images.start],
                    rows_of_scale: task.count,
                    rows: task.count,
                    right: bytes(right),
                    right_scale: dy.scales[images.start],
                    columns: channels,
                    depth: count,
                };
                let mut session = Session::new(Engine::current());
                let at = |row: usize, places: &mut [usize]| {
                    apart(channels, 0)(task.first + row, places);
                };
                let turn = Turn {
                    totals: (at_once < end - begin).then_some(&totals),
                    first_block: task.block,
                    is_first: start == begin,
                    is_last: start + count == end,
                };
                // SAFETY: tasks have other rows, and so other totals and other numbers of the gradient.
                unsafe { product.turn(&mut session, 0..task.count, &turn, &gradient, at) };
            });
        }
    }

    /// Turns what windows see, from one on, into the rows of all bands.
    fn turn_images(
        &self,
        threads: &Threads,
        x: &SlicedImages<'_>,
        (start, count): (usize, usize),
        stride: usize,
        [upper, lower]: [&mut [f32]; 2],
    ) {
        let blocks = (
            pieces_mut(bytes_mut(upper), ROWS * stride),
            pieces_mut(bytes_mut(lower), ROWS * stride),
        );
        let (seen, width) = (self.seen(count), x.grid.stride());
        let of_band = self.rows / self.bands.len() / ROWS;
        threads.each(blocks, |block, (upper, lower)| {
            let first = self.bands[block / of_band].begin + block % of_band * ROWS;
            for (slice, to) in x.slices.into_iter().zip([upper, lower]) {
                for at in (0..seen).step_by(DEPTH) {
                    let from = &slice[first + (start + at) * width..];
                    transpose_bytes(from, width, ROWS, &mut to[at..], stride);
                }
            }
        });
    }
}
