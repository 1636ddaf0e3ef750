//! From sums to outputs, and products of whole operands.
//!
//! An output is v = the sum over the depth of `256 ha hb + ha lb + la hb`, exactly; then `(f32(v) * fa) * fb`, where f32
//! rounds once, to nearest even, and fa and fb are the operands' factors.

use super::block::{
    Block, COLUMNS, DEEPEST, DEPTH, Left, ROWS, Session, Sums, TILE, TILE_COLUMNS, contiguous,
};
use super::engine::Engine;
use super::right::{depths, right_bytes, tiles};
use super::scale::Scale;
use crate::simd::for_each_isa;
use crate::threads::{Grid, SharedMut, Threads};
use std::ops::Range;

/// The deepest sum whose v fits 32 bits, whatever the numbers.
const SHALLOW: usize = 512;

/// How many times as fast products are as those in single precision: for how finely work is cut.
const FASTER: usize = 4;

/// A product of a left and a right operand.
#[derive(Clone, Copy)]
pub(super) struct Product<'a> {
    /// Rows of the left operand: there is memory for whole blocks of them.
    pub(super) left: Left<'a>,
    /// Where in a row each 64 numbers lie, if not one after the other.
    pub(super) offsets: Option<&'a [usize]>,
    /// The scales of the rows: of so many that follow each other each.
    pub(super) row_scales: &'a [Scale],
    pub(super) rows_of_scale: usize,
    pub(super) rows: usize,
    pub(super) right: &'a [i8],
    pub(super) right_scale: Scale,
    pub(super) columns: usize,
    pub(super) depth: usize,
}

/// Where the outputs of a block go: some rows of it, from a column on.
struct Destination<'a> {
    to: SharedMut<'a, f32>,
    places: [usize; ROWS],
    rows: usize,
    column: usize,
    width: usize,
}

impl<'a> Destination<'a> {
    /// The rows of this range, of so many outputs from a column on. `place` writes where each row begins, or [`NOWHERE`].
    ///
    /// # Safety
    /// Nobody else uses these places while this is in use.
    #[inline]
    unsafe fn new(
        to: &SharedMut<'a, f32>,
        rows: Range<usize>,
        (column, width): (usize, usize),
        place: impl Fn(usize, &mut [usize]),
    ) -> Self {
        let mut places = [0; ROWS];
        place(rows.start, &mut places[..rows.len()]);
        Self {
            to: to.again(),
            places,
            rows: rows.len(),
            column,
            width,
        }
    }

    /// Writes a row: its first numbers, as many as it has room for.
    #[inline(always)]
    fn write(&self, row: usize, outputs: &[f32; COLUMNS]) {
        if self.places[row] == NOWHERE {
            return;
        }
        let at = self.places[row] + self.column;
        // SAFETY: by the contract of `new`.
        let to = unsafe { self.to.part(at..at + self.width) };
        match <&mut [f32; COLUMNS]>::try_from(&mut *to) {
            Ok(whole) => *whole = *outputs,
            Err(_) => to.copy_from_slice(&outputs[..self.width]),
        }
    }
}

/// Rows that are so far apart, from a place on: where each begins.
pub(super) fn apart(stride: usize, first: usize) -> impl Fn(usize, &mut [usize]) + Sync + Copy {
    move |row, places| {
        for (i, place) in places.iter_mut().enumerate() {
            *place = (row + i) * stride - first;
        }
    }
}

/// Bytes of both slices of the rows that stay in the second-level cache while all columns go by.
const ROWS_IN_CACHE: usize = 512 * 1024;

/// Where a row goes that nobody needs.
pub(super) const NOWHERE: usize = usize::MAX;

impl Product<'_> {
    /// Computes all outputs, plus a number for each column, into rows of `to`. `place` writes where each of some rows
    /// begins, or [`NOWHERE`].
    ///
    /// # Safety
    /// No two rows go to the same places, and nobody else uses these meanwhile.
    pub(super) unsafe fn compute(
        &self,
        threads: &Threads,
        bias: Option<&[f32]>,
        to: &SharedMut<'_, f32>,
        place: impl Fn(usize, &mut [usize]) + Sync,
    ) {
        let work = self.rows * self.columns * self.depth;
        let (rows, columns) = ((self.rows, ROWS), (self.columns, COLUMNS));
        let grid = Grid::new(threads, rows, columns, work / FASTER);
        let at_once = (ROWS_IN_CACHE / (2 * self.left.stride) / ROWS).max(1) * ROWS;
        threads.each(0..grid.count(), |_, tile| {
            let (rows, columns) = grid.tile(tile);
            let mut session = Session::new(Engine::current());
            for first in rows.clone().step_by(at_once) {
                let rows = first..(first + at_once).min(rows.end);
                let columns = columns.clone();
                // SAFETY: by this function's contract, and tiles do not overlap.
                unsafe { self.part(&mut session, rows, columns, bias, to, &place) };
            }
        });
    }

    /// Computes some rows and columns, which begin with whole blocks, on this thread.
    ///
    /// # Safety
    /// Nobody else uses these places meanwhile.
    #[inline]
    pub(super) unsafe fn part(
        &self,
        session: &mut Session,
        rows: Range<usize>,
        columns: Range<usize>,
        bias: Option<&[f32]>,
        to: &SharedMut<'_, f32>,
        place: impl Fn(usize, &mut [usize]),
    ) {
        // The matrix unit works on a block while the one before it is finished.
        let mut before = None;
        for column in columns.clone().step_by(COLUMNS) {
            let width = COLUMNS.min(columns.end - column);
            let bias = bias.map(|bias| &bias[column..column + width]);
            for row in rows.clone().step_by(ROWS) {
                let of_block = row..(row + ROWS).min(rows.end);
                // SAFETY: by this function's contract, and blocks do not overlap.
                let to = unsafe { Destination::new(to, of_block, (column, width), &place) };
                let finish = self.finish(row, column, bias);
                if self.depth > DEEPEST {
                    let mut totals = Totals::ZERO;
                    self.add_block(session, row, column, &mut totals);
                    finish_totals(&totals, &finish, &to);
                    continue;
                }
                session.compute(&self.operands(row, column));
                if let Some((finish, to)) = before.replace((finish, to)) {
                    self.finish_sums(session.before(), &finish, &to);
                }
            }
        }
        if let Some((finish, to)) = before {
            self.finish_sums(session.newest(), &finish, &to);
        }
    }

    /// Writes the outputs of a block from its sums.
    #[inline]
    fn finish_sums(&self, sums: &Sums, finish: &Finish, to: &Destination<'_>) {
        match self.depth <= SHALLOW {
            true => finish_shallow(sums, finish, to),
            false => finish_deep(sums, finish, to),
        }
    }

    /// What the sums of a block become outputs with.
    #[inline]
    fn finish(&self, row: usize, column: usize, bias: Option<&[f32]>) -> Finish {
        let mut finish = Finish {
            factors: self.factors(row),
            right: self.right_scale.factor(),
            bias: [0.0; COLUMNS],
            tiles: tiles(column, self.columns),
        };
        if let Some(bias) = bias {
            finish.bias[..bias.len()].copy_from_slice(bias);
        }
        finish
    }

    /// The product of some columns alone, which begin with a whole block.
    pub(super) fn of_columns(&self, columns: Range<usize>) -> Self {
        Self {
            right: &self.right[right_bytes(self.depth, columns.start)..],
            columns: columns.len(),
            ..*self
        }
    }

    /// The operands of a block.
    #[inline]
    fn operands(&self, row: usize, column: usize) -> Block<'_> {
        Block {
            left: self.left.at(row, 0),
            offsets: self
                .offsets
                .unwrap_or_else(|| contiguous(depths(self.depth).min(DEEPEST / DEPTH))),
            right: &self.right[right_bytes(self.depth, column)..],
            tiles: tiles(column, self.columns),
        }
    }

    /// Adds a block to totals, which other depths are added to as well.
    fn add_block(&self, session: &mut Session, row: usize, column: usize, totals: &mut Totals) {
        const MOST: usize = DEEPEST / DEPTH;
        let block = self.operands(row, column);
        if self.depth <= DEEPEST {
            session.compute(&block);
            return carry(session.newest(), block.tiles, totals);
        }
        let depths = depths(self.depth);
        for first in (0..depths).step_by(MOST) {
            let part = Block {
                left: block.left.at(0, first * DEPTH),
                offsets: contiguous(MOST.min(depths - first)),
                right: &block.right[first * block.tiles * 2 * TILE..],
                tiles: block.tiles,
            };
            session.compute(&part);
            carry(session.newest(), block.tiles, totals);
        }
    }

    /// Computes some rows, which begin with a whole block, as one of the turns in which the depth is taken.
    ///
    /// # Safety
    /// Nobody else uses these places, nor the totals of these rows, meanwhile.
    pub(super) unsafe fn turn(
        &self,
        session: &mut Session,
        rows: Range<usize>,
        turn: &Turn<'_>,
        to: &SharedMut<'_, f32>,
        place: impl Fn(usize, &mut [usize]),
    ) {
        let Some(totals) = turn.totals else {
            // SAFETY: by this function's contract.
            return unsafe { self.part(session, rows, 0..self.columns, None, to, place) };
        };
        let pairs = self.columns.div_ceil(COLUMNS);
        for (pair, column) in (0..self.columns).step_by(COLUMNS).enumerate() {
            for row in rows.clone().step_by(ROWS) {
                let number = (turn.first_row + row) / ROWS * pairs + pair;
                // SAFETY: by this function's contract, and blocks have totals of their own.
                let totals = unsafe { &mut totals.part(number..number + 1)[0] };
                if turn.is_first {
                    *totals = Totals::ZERO;
                }
                self.add_block(session, row, column, totals);
                if turn.is_last {
                    let of_block = row..(row + ROWS).min(rows.end);
                    let columns = (column, COLUMNS.min(self.columns - column));
                    // SAFETY: by this function's contract, and blocks do not overlap.
                    let to = unsafe { Destination::new(to, of_block, columns, &place) };
                    finish_totals(totals, &self.finish(row, column, None), &to);
                }
            }
        }
    }

    /// The factors of a block's rows.
    #[inline]
    fn factors(&self, row: usize) -> [f32; ROWS] {
        let last = (row + ROWS).min(self.rows) - 1;
        let (first, end) = (row / self.rows_of_scale, last / self.rows_of_scale);
        let mut factors = [self.row_scales[first].factor(); ROWS];
        if end > first {
            for (i, factor) in factors.iter_mut().enumerate().take(last - row + 1) {
                *factor = self.row_scales[(row + i) / self.rows_of_scale].factor();
            }
        }
        factors
    }
}

/// What a block's sums become outputs with: the factors of its rows, that of the right operand, what is added, and how
/// many tiles there are.
struct Finish {
    factors: [f32; ROWS],
    right: f32,
    bias: [f32; COLUMNS],
    tiles: usize,
}

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
}

/// One of the turns in which the depth of a product is taken, so that its operands stay in a cache.
pub(super) struct Turn<'a> {
    /// What the turns add up in, block by block: pairs of columns, then rows. None if this is the only turn.
    pub(super) totals: Option<&'a SharedMut<'a, Totals>>,
    /// Which row of all the product's first is, in whole blocks.
    pub(super) first_row: usize,
    pub(super) is_first: bool,
    pub(super) is_last: bool,
}

for_each_isa! {
    /// Adds sums of 32 bits to totals.
    fn carry(sums: &Sums, tiles: usize, totals: &mut Totals) {
        for (tile, sums) in sums.0.iter().enumerate().take(tiles) {
            for (row, totals) in totals.0.iter_mut().enumerate() {
                let totals = &mut totals[tile * TILE_COLUMNS..][..TILE_COLUMNS];
                let of_row = sums.upper[row].iter().zip(&sums.mixed[row]);
                for (total, (&upper, &mixed)) in totals.iter_mut().zip(of_row) {
                    *total += 256 * i64::from(upper) + i64::from(mixed);
                }
            }
        }
    }

    /// The outputs that totals stand for.
    fn finish_totals(totals: &Totals, with: &Finish, to: &Destination<'_>) {
        for row in 0..to.rows {
            let mut outputs = [0.0; COLUMNS];
            let of_row = totals.0[row].iter().zip(&with.bias);
            for (output, (&v, bias)) in outputs.iter_mut().zip(of_row) {
                *output = v as f32 * with.factors[row] * with.right + bias;
            }
            to.write(row, &outputs);
        }
    }

    /// The outputs that sums of 32 bits stand for.
    fn finish_deep(sums: &Sums, with: &Finish, to: &Destination<'_>) {
        for row in 0..to.rows {
            let mut outputs = [0.0; COLUMNS];
            for tile in 0..with.tiles {
                let (upper, mixed) = (&sums.0[tile].upper[row], &sums.0[tile].mixed[row]);
                for column in 0..TILE_COLUMNS {
                    // v = w 2^24 + u with 0 <= u < 2^24: both are exact in single precision, so their sum is v, rounded
                    // once.
                    let high = upper[column] + (mixed[column] >> 8);
                    let (w, u) = (high >> 16, (high & 0xffff) << 8 | mixed[column] & 255);
                    let v = w as f32 * 16_777_216.0 + u as f32;
                    let at = tile * TILE_COLUMNS + column;
                    outputs[at] = v * with.factors[row] * with.right + with.bias[at];
                }
            }
            to.write(row, &outputs);
        }
    }

    /// The same of a depth up to [`SHALLOW`].
    fn finish_shallow(sums: &Sums, with: &Finish, to: &Destination<'_>) {
        for row in 0..to.rows {
            let mut outputs = [0.0; COLUMNS];
            for tile in 0..with.tiles {
                let (upper, mixed) = (&sums.0[tile].upper[row], &sums.0[tile].mixed[row]);
                for column in 0..TILE_COLUMNS {
                    let v = ((upper[column] << 8) + mixed[column]) as f32;
                    let at = tile * TILE_COLUMNS + column;
                    outputs[at] = v * with.factors[row] * with.right + with.bias[at];
                }
            }
            to.write(row, &outputs);
        }
    }
}
