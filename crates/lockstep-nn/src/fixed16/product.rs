//! From sums to outputs, and products of whole operands.
//!
//! An output is v = the sum over the depth of `256 ha hb + ha lb + la hb`, exactly; then `(f32(v) * fa) * fb`, where f32
//! rounds once, to nearest even, and fa and fb are the operands' factors.

use super::block::{Block, COLUMNS, DEEPEST, DEPTH, Left, ROWS, Session, Sums, TILE, TILE_COLUMNS};
use super::engine::Engine;
use super::right::{depths, right_bytes, tiles};
use super::scale::Scale;
use crate::simd::for_each_isa;
use crate::threads::{Grid, SharedMut, Threads};
use std::ops::Range;

/// A block of outputs.
pub(super) type Outputs = [[f32; COLUMNS]; ROWS];

/// A product of a left and a right operand.
#[derive(Clone, Copy)]
pub(super) struct Product<'a> {
    /// Rows of the left operand: there is memory for whole blocks of them.
    pub(super) left: Left<'a>,
    /// The scale of each row, or the one that all have.
    pub(super) row_scales: &'a [Scale],
    pub(super) rows: usize,
    pub(super) right: &'a [i8],
    pub(super) right_scale: Scale,
    pub(super) columns: usize,
    pub(super) depth: usize,
}

impl Product<'_> {
    /// Computes all outputs, plus a number for each column, into rows of `to` that are so far apart.
    pub(super) fn compute(
        &self,
        threads: &Threads,
        bias: Option<&[f32]>,
        (to, stride): (&mut [f32], usize),
    ) {
        let work = self.rows * self.columns * self.depth;
        let (rows, columns) = ((self.rows, ROWS), (self.columns, COLUMNS));
        let grid = Grid::new(threads, rows, columns, work / FASTER);
        let to = SharedMut::new(to);
        threads.each(0..grid.count(), |_, tile| {
            let (rows, columns) = grid.tile(tile);
            let session = Session::new(Engine::current());
            for column in columns.clone().step_by(COLUMNS) {
                let width = COLUMNS.min(columns.end - column);
                let bias = bias.map(|bias| &bias[column..column + width]);
                for row in rows.clone().step_by(ROWS) {
                    let outputs = self.block(&session, row, column);
                    let rows = row..(row + ROWS).min(rows.end);
                    let at = row * stride + column;
                    let place = |row| at + row * stride;
                    // SAFETY: tiles do not overlap.
                    unsafe { store(&outputs, rows.len(), width, bias, &to, place) };
                }
            }
        });
    }

    /// The operands of a block.
    #[inline]
    fn operands(&self, row: usize, column: usize) -> Block<'_> {
        Block {
            left: self.left.at(row, 0),
            right: &self.right[right_bytes(self.depth, column)..],
            depths: depths(self.depth),
            tiles: tiles(column, self.columns),
        }
    }

    /// A block of outputs.
    #[inline]
    pub(super) fn block(&self, session: &Session, row: usize, column: usize) -> Outputs {
        let block = self.operands(row, column);
        if block.depths * DEPTH > DEEPEST {
            let mut totals = Totals::ZERO;
            self.add_block(session, row, column, &mut totals);
            return self.finish_block(row, &totals);
        }
        let (mut outputs, mut sums) = ([[0.0; COLUMNS]; ROWS], Sums::ZERO);
        session.compute(&block, false, &mut sums);
        let right = self.right_scale.factor();
        finish(&sums, block.tiles, &self.factors(row), right, &mut outputs);
        outputs
    }

    /// Adds a block to totals, which other depths are added to as well.
    pub(super) fn add_block(
        &self,
        session: &Session,
        row: usize,
        column: usize,
        totals: &mut Totals,
    ) {
        const MOST: usize = DEEPEST / DEPTH;
        let (block, mut sums) = (self.operands(row, column), Sums::ZERO);
        for first in (0..block.depths).step_by(MOST) {
            let part = Block {
                left: block.left.at(0, first * DEPTH),
                right: &block.right[first * block.tiles * 2 * TILE..],
                depths: MOST.min(block.depths - first),
                tiles: block.tiles,
            };
            session.compute(&part, false, &mut sums);
            carry(&sums, block.tiles, totals);
        }
    }

    /// The outputs of a block from its totals.
    pub(super) fn finish_block(&self, row: usize, totals: &Totals) -> Outputs {
        let (factors, right) = (self.factors(row), self.right_scale.factor());
        let mut outputs = [[0.0; COLUMNS]; ROWS];
        finish_totals(totals, &factors, right, &mut outputs);
        outputs
    }

    /// The factors of a block's rows.
    #[inline]
    fn factors(&self, row: usize) -> [f32; ROWS] {
        match self.row_scales {
            [one] => [one.factor(); ROWS],
            all => {
                let mut factors = [0.0; ROWS];
                let scales = &all[row..(row + ROWS).min(self.rows)];
                factors
                    .iter_mut()
                    .zip(scales)
                    .for_each(|(to, scale)| *to = scale.factor());
                factors
            }
        }
    }
}

/// How many times as fast products are as those in single precision: for how finely work is cut.
const FASTER: usize = 4;

/// Sums that 32 bits do not hold: the v of every output of a block.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Totals([[i64; COLUMNS]; ROWS]);

impl Totals {
    const ZERO: Self = Self([[0; COLUMNS]; ROWS]);

    /// Numbers of memory, as `f32`, for the totals of so many blocks.
    pub(super) fn room(blocks: usize) -> usize {
        blocks * size_of::<Self>() / size_of::<f32>()
    }

    /// Begins at zero.
    pub(super) fn clear(&mut self) {
        *self = Self::ZERO;
    }
}

for_each_isa! {
    /// Adds sums of 32 bits to totals.
    fn carry(sums: &Sums, tiles: usize, totals: &mut Totals) {
        for (tile, sums) in sums.0.iter().enumerate().take(tiles) {
            for (row, totals) in totals.0.iter_mut().enumerate() {
                let totals = &mut totals[tile * TILE_COLUMNS..][..TILE_COLUMNS];
                for column in 0..TILE_COLUMNS {
                    let (upper, mixed) = (sums.upper[row][column], sums.mixed[row][column]);
                    totals[column] += 256 * i64::from(upper) + i64::from(mixed);
                }
            }
        }
    }

    /// The outputs that totals stand for.
    fn finish_totals(totals: &Totals, factors: &[f32; ROWS], right: f32, outputs: &mut Outputs) {
        for ((outputs, totals), factor) in outputs.iter_mut().zip(&totals.0).zip(factors) {
            for (output, &total) in outputs.iter_mut().zip(totals) {
                *output = total as f32 * factor * right;
            }
        }
    }

    /// The outputs that sums of 32 bits stand for.
    fn finish(sums: &Sums, tiles: usize, factors: &[f32; ROWS], right: f32, outputs: &mut Outputs) {
        for (tile, sums) in sums.0.iter().enumerate().take(tiles) {
            for row in 0..ROWS {
                let outputs = &mut outputs[row][tile * TILE_COLUMNS..][..TILE_COLUMNS];
                for column in 0..TILE_COLUMNS {
                    let (upper, mixed) = (sums.upper[row][column], sums.mixed[row][column]);
                    // v = w 2^24 + u with 0 <= u < 2^24: both are exact in single precision, so their sum is v, rounded
                    // once.
                    let high = upper + (mixed >> 8);
                    let (w, u) = (high >> 16, (high & 0xffff) << 8 | mixed & 255);
                    let v = w as f32 * 16_777_216.0 + u as f32;
                    outputs[column] = v * factors[row] * right;
                }
            }
        }
    }
}

/// Writes so many rows and columns of a block of outputs, each row where `place` says, plus a number for each column.
///
/// # Safety
/// Nobody else uses these places meanwhile.
#[inline(always)]
pub(super) unsafe fn store(
    outputs: &Outputs,
    rows: usize,
    width: usize,
    bias: Option<&[f32]>,
    to: &SharedMut<'_, f32>,
    place: impl Fn(usize) -> usize,
) {
    let mut added = [0.0; COLUMNS];
    if let Some(bias) = bias {
        added[..width].copy_from_slice(bias);
    }
    for (row, outputs) in outputs.iter().enumerate().take(rows) {
        let at = place(row);
        // SAFETY: by this function's contract.
        let to = unsafe { to.part(at..at + width) };
        match <&mut [f32; COLUMNS]>::try_from(&mut *to) {
            Ok(whole) => {
                for i in 0..COLUMNS {
                    whole[i] = outputs[i] + added[i];
                }
            }
            Err(_) => {
                for ((to, output), added) in to.iter_mut().zip(outputs).zip(added) {
                    *to = output + added;
                }
            }
        }
    }
}

/// Computes a part of the outputs, on this thread, into rows of `to` that follow each other without gaps: rows and
/// columns that begin with whole blocks.
pub(super) fn compute_part(
    session: &Session,
    product: &Product<'_>,
    rows: Range<usize>,
    columns: Range<usize>,
    to: &mut [f32],
) {
    let width = columns.len();
    let to = SharedMut::new(to);
    for column in columns.clone().step_by(COLUMNS) {
        for row in rows.clone().step_by(ROWS) {
            let outputs = product.block(session, row, column);
            let at = (row - rows.start) * width + column - columns.start;
            let place = |row| at + row * width;
            let (count, of_block) = (ROWS.min(rows.end - row), COLUMNS.min(columns.end - column));
            // SAFETY: `to` is borrowed mutably.
            unsafe { store(&outputs, count, of_block, None, &to, place) };
        }
    }
}
