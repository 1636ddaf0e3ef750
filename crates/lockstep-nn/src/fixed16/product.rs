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

/// What the sums of a block become outputs with, and where these go. It is filled where it lies, with numbers of one size
/// each: to move it would mean to wait for the matrix unit.
struct Outputs<'a> {
    to: SharedMut<'a, f32>,
    /// Where each row begins, or [`NOWHERE`].
    places: &'a [usize],
    /// The factors of the rows, and that of the right operand.
    factors: [f32; ROWS],
    right: f32,
    /// A number for each column of the product.
    bias: Option<&'a [f32]>,
    column: usize,
    width: usize,
}

impl<'a> Outputs<'a> {
    fn new(to: &SharedMut<'a, f32>, right: f32, bias: Option<&'a [f32]>) -> Self {
        Self {
            to: to.again(),
            places: &[],
            factors: [0.0; ROWS],
            right,
            bias,
            column: 0,
            width: 0,
        }
    }

    /// What is added to the columns of the block; `spare` holds it if they are fewer than a whole block has.
    #[inline(always)]
    fn bias<'b>(&'b self, spare: &'b mut [f32; COLUMNS]) -> &'b [f32; COLUMNS] {
        let bias = self.bias.map_or(&[][..], |bias| &bias[self.column..]);
        if let Some(whole) = bias.first_chunk() {
            return whole;
        }
        spare[..bias.len()].copy_from_slice(bias);
        spare
    }

    /// How many tiles the block has.
    fn tiles(&self) -> usize {
        self.width.div_ceil(TILE_COLUMNS)
    }

    /// Writes a row: its first numbers, as many as it has room for.
    #[inline(always)]
    fn write(&self, row: usize, outputs: &[f32; COLUMNS]) {
        if self.places[row] == NOWHERE {
            return;
        }
        let at = self.places[row] + self.column;
        // SAFETY: by the contracts of `Product::part` and `Product::turn`, nobody else uses these places.
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
const ROWS_IN_CACHE: usize = 1024 * 1024;

/// The most rows that do.
const MOST_ROWS: usize = 2048;

/// Blocks of rows that go together.
pub(super) const BLOCKS: usize = 8;

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
        let own = self.with_one_scale();
        threads.each(0..grid.count(), |_, tile| {
            let (rows, columns) = grid.tile(tile);
            let mut session = Session::new(Engine::current());
            // SAFETY: by this function's contract, and tiles do not overlap.
            unsafe { own.part(&mut session, rows, columns, bias, to, &place) };
        });
    }

    /// The same, with one scale for all rows if theirs are equal.
    fn with_one_scale(&self) -> Self {
        let mut pairs = self.row_scales.windows(2);
        if !pairs.all(|pair| pair[0] == pair[1]) {
            return *self;
        }
        Self {
            row_scales: &self.row_scales[..self.row_scales.len().min(1)],
            rows_of_scale: self.rows.max(1),
            ..*self
        }
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
        let at_once = ROWS_IN_CACHE / (2 * self.left.stride.max(1)) / ROWS * ROWS;
        let at_once = at_once.clamp(ROWS, MOST_ROWS);
        let mut places = [NOWHERE; MOST_ROWS];
        for first in rows.clone().step_by(at_once) {
            let rows = first..(first + at_once).min(rows.end);
            place(first, &mut places[..rows.len()]);
            let places = &places[..rows.len()];
            for column in columns.clone().step_by(COLUMNS) {
                let width = COLUMNS.min(columns.end - column);
                for group in (0..rows.len()).step_by(BLOCKS * ROWS) {
                    let places = &places[group..rows.len().min(group + BLOCKS * ROWS)];
                    let mut outputs = Outputs::new(to, self.right_scale.factor(), bias);
                    (outputs.column, outputs.width) = (column, width);
                    self.group(session, first + group, places, outputs);
                }
            }
        }
    }

    /// Computes the outputs of some blocks of rows, one below the other.
    #[inline]
    fn group<'a>(
        &self,
        session: &mut Session,
        row: usize,
        places: &'a [usize],
        mut outputs: Outputs<'a>,
    ) {
        let (column, blocks) = (outputs.column, places.len().div_ceil(ROWS));
        let depths = depths(self.depth);
        if self.depth <= DEEPEST {
            self.sums(session, (row, blocks), column, 0..depths, |sums, number| {
                self.set_rows(row, number, places, &mut outputs);
                match self.depth <= SHALLOW {
                    true => finish_shallow(sums, &outputs),
                    false => finish_deep(sums, &outputs),
                }
            });
            return;
        }
        let mut totals = [Totals::ZERO; BLOCKS];
        for first in (0..depths).step_by(DEEPEST / DEPTH) {
            let steps = first..(first + DEEPEST / DEPTH).min(depths);
            self.sums(session, (row, blocks), column, steps, |sums, number| {
                carry(sums, &mut totals[number]);
            });
        }
        for (number, totals) in totals.iter().enumerate().take(blocks) {
            self.set_rows(row, number, places, &mut outputs);
            finish_totals(totals, &outputs);
        }
    }

    /// Says where the rows of a block go, of a group whose first row this is, and what their factors are.
    #[inline]
    fn set_rows<'a>(
        &self,
        row: usize,
        number: usize,
        places: &'a [usize],
        outputs: &mut Outputs<'a>,
    ) {
        let first = number * ROWS;
        outputs.places = &places[first..(first + ROWS).min(places.len())];
        let (first, last) = (row + first, (row + first + ROWS).min(self.rows) - 1);
        let scale = |row: usize| row / self.rows_of_scale;
        outputs.factors = [self.row_scales[scale(first)].factor(); ROWS];
        if scale(last) > scale(first) {
            for (i, factor) in outputs.factors.iter_mut().enumerate() {
                *factor = self.row_scales[scale((first + i).min(last))].factor();
            }
        }
    }

    /// Computes the sums of some blocks of rows, one below the other, over a part of the depth, in steps of 64. `done` gets
    /// those of each block while the matrix unit works on the next.
    #[inline]
    fn sums(
        &self,
        session: &mut Session,
        (row, blocks): (usize, usize),
        column: usize,
        steps: Range<usize>,
        mut done: impl FnMut(&Sums, usize),
    ) {
        let tiles = tiles(column, self.columns);
        let right = &self.right[right_bytes(self.depth, column)..];
        let (left, offsets) = match self.offsets {
            Some(offsets) => (self.left, &offsets[steps.clone()]),
            None => (
                self.left.at(0, steps.start * DEPTH),
                contiguous(steps.len()),
            ),
        };
        for number in 0..blocks {
            session.compute(&Block {
                left: left.at(row + number * ROWS, 0),
                offsets,
                right: &right[steps.start * tiles * 2 * TILE..],
                tiles,
            });
            if number > 0 {
                done(session.before(), number - 1);
            }
        }
        done(session.newest(), blocks - 1);
    }

    /// The product of some columns alone, which begin with a whole block.
    pub(super) fn of_columns(&self, columns: Range<usize>) -> Self {
        Self {
            right: &self.right[right_bytes(self.depth, columns.start)..],
            columns: columns.len(),
            ..*self
        }
    }

    /// Computes some rows, which begin with a whole block, as one of the turns in which the depth is taken. None is deeper
    /// than [`DEEPEST`].
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
        let steps = 0..depths(self.depth);
        for (pair, column) in (0..self.columns).step_by(COLUMNS).enumerate() {
            for row in rows.clone().step_by(BLOCKS * ROWS) {
                let mut places = [NOWHERE; BLOCKS * ROWS];
                let count = places.len().min(rows.end - row);
                if turn.is_last {
                    place(row, &mut places[..count]);
                }
                let (places, blocks) = (&places[..count], count.div_ceil(ROWS));
                let mut outputs = Outputs::new(to, self.right_scale.factor(), None);
                (outputs.column, outputs.width) = (column, COLUMNS.min(self.columns - column));
                self.sums(
                    session,
                    (row, blocks),
                    column,
                    steps.clone(),
                    |sums, number| {
                        let own = turn.first_block + row / ROWS + number;
                        // SAFETY: by this function's contract, and blocks have totals of their own.
                        let totals =
                            unsafe { totals.part(own * pairs + pair..own * pairs + pair + 1) };
                        let mut sum = match turn.is_first {
                            true => Totals::ZERO,
                            false => totals[0],
                        };
                        carry(sums, &mut sum);
                        if turn.is_last {
                            self.set_rows(row, number, places, &mut outputs);
                            finish_totals(&sum, &outputs);
                        } else {
                            totals[0] = sum;
                        }
                    },
                );
            }
        }
    }
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
    /// Which block of rows of all the product's first is.
    pub(super) first_block: usize,
    pub(super) is_first: bool,
    pub(super) is_last: bool,
}

for_each_isa! {
    /// Adds sums of 32 bits to totals.
    fn carry(sums: &Sums, totals: &mut Totals) {
        for (tile, sums) in sums.0.iter().enumerate() {
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
    fn finish_totals(totals: &Totals, to: &Outputs<'_>) {
        let mut spare = [0.0; COLUMNS];
        let bias = to.bias(&mut spare);
        for row in 0..to.places.len() {
            let mut outputs = [0.0; COLUMNS];
            let of_row = totals.0[row].iter().zip(bias);
            for (output, (&v, bias)) in outputs.iter_mut().zip(of_row) {
                *output = v as f32 * to.factors[row] * to.right + bias;
            }
            to.write(row, &outputs);
        }
    }

    /// The outputs that sums of 32 bits stand for.
    fn finish_deep(sums: &Sums, to: &Outputs<'_>) {
        let mut spare = [0.0; COLUMNS];
        let bias = to.bias(&mut spare);
        for row in 0..to.places.len() {
            let mut outputs = [0.0; COLUMNS];
            for tile in 0..to.tiles() {
                let (upper, mixed) = (&sums.0[tile].upper[row], &sums.0[tile].mixed[row]);
                for column in 0..TILE_COLUMNS {
                    // v = w 2^24 + u with 0 <= u < 2^24: both are exact in single precision, so their sum is v, rounded
                    // once.
                    let high = upper[column] + (mixed[column] >> 8);
                    let (w, u) = (high >> 16, (high & 0xffff) << 8 | mixed[column] & 255);
                    let v = w as f32 * 16_777_216.0 + u as f32;
                    let at = tile * TILE_COLUMNS + column;
                    outputs[at] = v * to.factors[row] * to.right + bias[at];
                }
            }
            to.write(row, &outputs);
        }
    }

    /// The same of a depth up to [`SHALLOW`].
    fn finish_shallow(sums: &Sums, to: &Outputs<'_>) {
        let mut spare = [0.0; COLUMNS];
        let bias = to.bias(&mut spare);
        for row in 0..to.places.len() {
            let mut outputs = [0.0; COLUMNS];
            for tile in 0..to.tiles() {
                let (upper, mixed) = (&sums.0[tile].upper[row], &sums.0[tile].mixed[row]);
                for column in 0..TILE_COLUMNS {
                    let v = ((upper[column] << 8) + mixed[column]) as f32;
                    let at = tile * TILE_COLUMNS + column;
                    outputs[at] = v * to.factors[row] * to.right + bias[at];
                }
            }
            to.write(row, &outputs);
        }
    }
}
