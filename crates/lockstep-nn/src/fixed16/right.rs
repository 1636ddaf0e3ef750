//! Operands as engines read them, made from matrices of numbers.
//!
//! The right operand is cut into pairs of 16 columns; a last 16 without a partner go alone. Of a pair there are, for each
//! 64 in depth, the upper and the lower tile of the first columns, then those of the others. A tile has 16 lines of 16
//! columns of four numbers, which follow each other in depth. What the matrix lacks is zeros, so what the left operand
//! has there does not matter.

use super::block::{COLUMNS, DEPTH, ROWS, TILE, TILE_COLUMNS};
use super::slices::{Line, line, slice_words};
use super::transpose::{Square, four_rows, transpose};
use crate::factors::PANEL;
use crate::simd::for_each_isa;

/// Words of a tile.
const TILE_WORDS: usize = TILE / 4;

/// Words of a line of a tile.
const LINE_WORDS: usize = TILE_COLUMNS;

/// How many times [`DEPTH`] a depth is, filled up.
pub(super) fn depths(depth: usize) -> usize {
    depth.div_ceil(DEPTH)
}

/// Tiles of the pair that begins with this column.
pub(super) fn tiles(column: usize, columns: usize) -> usize {
    (columns - column).div_ceil(TILE_COLUMNS).min(2)
}

/// Bytes of so many columns of the right operand.
pub(super) fn right_bytes(depth: usize, columns: usize) -> usize {
    depths(depth) * columns.div_ceil(TILE_COLUMNS) * 2 * TILE
}

/// Numbers of memory, as `f32`, for this right operand.
pub(super) fn right_room(depth: usize, columns: usize) -> usize {
    right_bytes(depth, columns) / 4
}

/// Numbers of memory, as `f32`, for both slices of so many rows of a left operand.
pub(super) fn left_room(rows: usize, depth: usize) -> usize {
    2 * rows.next_multiple_of(ROWS) * depths(depth) * DEPTH / 4
}

/// A matrix of numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matrix<'a> {
    pub(super) data: &'a [f32],
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// From a row to the next.
    pub(super) stride: usize,
}

impl<'a> Matrix<'a> {
    /// A matrix whose rows follow each other.
    pub(super) fn new(data: &'a [f32], columns: usize) -> Self {
        Self {
            data,
            rows: data.len() / columns,
            columns,
            stride: columns,
        }
    }

    /// At most so many of its columns, from one on.
    pub(super) fn columns(self, first: usize, most: usize) -> Self {
        Self {
            data: self.data.get(first..).unwrap_or_default(),
            columns: (self.columns - first).min(most),
            ..self
        }
    }

    /// 16 numbers of a row, in `spare` if the matrix has fewer.
    #[inline(always)]
    fn sixteen<'b>(&self, row: usize, column: usize, spare: &'b mut [f32; 16]) -> &'b [f32; 16]
    where
        'a: 'b,
    {
        if row >= self.rows {
            return &[0.0; 16];
        }
        let at = row * self.stride + column;
        let left = (self.columns - column).min(16);
        if left == 16
            && let Some(whole) = self.data[at..].first_chunk()
        {
            return whole;
        }
        *spare = [0.0; 16];
        spare[..left].copy_from_slice(&self.data[at..at + left]);
        spare
    }

    /// Four rows of 16 columns.
    #[inline(always)]
    fn line(&self, row: usize, column: usize, by: f32) -> [Line; 2] {
        let mut spare = [[0.0; 16]; 4];
        let [a, b, c, d] = &mut spare;
        let rows = [
            self.sixteen(row, column, a),
            self.sixteen(row + 1, column, b),
            self.sixteen(row + 2, column, c),
            self.sixteen(row + 3, column, d),
        ];
        line(rows, by)
    }
}

/// A matrix in panels of [`PANEL`] columns, as weights of dense layers lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct Panels<'a> {
    pub(super) data: &'a [f32],
    pub(super) rows: usize,
    pub(super) columns: usize,
}

/// A pair of columns of the right operand is a panel.
const _: () = assert!(PANEL == COLUMNS);

impl<'a> Panels<'a> {
    /// The panel that begins with this column.
    pub(super) fn panel(self, column: usize) -> Matrix<'a> {
        let width = PANEL.min(self.columns - column);
        Matrix {
            data: &self.data[column * self.rows..],
            rows: self.rows,
            columns: width,
            stride: width,
        }
    }

    /// 64 numbers of a row, from a whole multiple of 64 on; zeros where there are fewer.
    #[inline(always)]
    fn sixty_four(&self, row: usize, column: usize) -> [f32; DEPTH] {
        let mut numbers = [0.0; DEPTH];
        for (half, numbers) in numbers.chunks_exact_mut(PANEL).enumerate() {
            let column = column + half * PANEL;
            if row < self.rows && column < self.columns {
                let width = PANEL.min(self.columns - column);
                let at = column * self.rows + row * width;
                match self.data[at..].first_chunk::<PANEL>() {
                    Some(whole) if width == PANEL => numbers.copy_from_slice(whole),
                    _ => numbers[..width].copy_from_slice(&self.data[at..at + width]),
                }
            }
        }
        numbers
    }
}

/// Matrices of some places of the kernels, each turned round: what was a row is a column. They follow each other in depth.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turned<'a> {
    /// The matrices of all places.
    pub(super) data: &'a [f32],
    pub(super) places: &'a [usize],
    /// Rows and columns of each, as they lie.
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl Turned<'_> {
    /// 64 numbers of a row, from a depth on; zeros where there are fewer.
    #[inline(always)]
    fn sixty_four(&self, row: usize, depth: usize) -> [f32; DEPTH] {
        let mut numbers = [0.0; DEPTH];
        if row >= self.rows {
            return numbers;
        }
        let (mut place, mut column, mut done) = (depth / self.columns, depth % self.columns, 0);
        while done < DEPTH && place < self.places.len() {
            let at = (self.places[place] * self.rows + row) * self.columns + column;
            let count = (self.columns - column).min(DEPTH - done);
            match self.data[at..].first_chunk() {
                Some(whole) if count == DEPTH => numbers = *whole,
                _ => numbers[done..done + count].copy_from_slice(&self.data[at..at + count]),
            }
            (place, column, done) = (place + 1, 0, done + count);
        }
        numbers
    }
}

/// A pair of columns of the right operand from so many rows, of which `sixty_four` gets 64 numbers from a depth on.
#[inline(always)]
fn pack_rows(
    rows: usize,
    row: usize,
    by: f32,
    to: &mut [u32],
    sixty_four: impl Fn(usize, usize) -> [f32; DEPTH],
) {
    let tiles = tiles(row, rows);
    for (number, to) in to.chunks_exact_mut(2 * TILE_WORDS).enumerate() {
        let (depth, tile) = (number / tiles, number % tiles);
        let mut squares: [Square; 2] = [[[0; 16]; 16]; 2];
        let [upper, lower] = &mut squares;
        for i in 0..TILE_COLUMNS {
            let numbers = sixty_four(row + tile * TILE_COLUMNS + i, depth * DEPTH);
            [upper[i], lower[i]] = slice_words(&numbers, by);
        }
        for (square, to) in squares.iter_mut().zip(to.chunks_exact_mut(TILE_WORDS)) {
            transpose(square);
            to.copy_from_slice(square.as_flattened());
        }
    }
}

for_each_isa! {
    /// A pair of columns of the right operand from a matrix of at most so many columns.
    pub(super) fn pack(matrix: Matrix<'_>, by: f32, to: &mut [u32]) {
        let tiles = tiles(0, matrix.columns);
        for (number, to) in to.chunks_exact_mut(2 * TILE_WORDS).enumerate() {
            let (depth, tile) = (number / tiles, number % tiles);
            let (upper, lower) = to.split_at_mut(TILE_WORDS);
            let lines = upper.chunks_exact_mut(LINE_WORDS).zip(lower.chunks_exact_mut(LINE_WORDS));
            for (i, (upper, lower)) in lines.enumerate() {
                let [h, l] = matrix.line(depth * DEPTH + 4 * i, tile * TILE_COLUMNS, by);
                upper.copy_from_slice(&h);
                lower.copy_from_slice(&l);
            }
        }
    }

    /// A pair of columns of the right operand from slices of so many rows, which are so far apart.
    pub(super) fn pack_slices(slices: [&[i8]; 2], width: usize, rows: usize, tiles: usize, to: &mut [u32]) {
        for (number, to) in to.chunks_exact_mut(2 * TILE_WORDS).enumerate() {
            let (depth, tile) = (number / tiles, number % tiles);
            for (slice, to) in slices.iter().zip(to.chunks_exact_mut(TILE_WORDS)) {
                for (i, line) in to.chunks_exact_mut(LINE_WORDS).enumerate() {
                    let row = depth * DEPTH + 4 * i;
                    let mut words = [0; LINE_WORDS];
                    if row < rows {
                        words = four_rows(&slice[row * width + tile * TILE_COLUMNS..], width);
                    }
                    if rows < row + 4 {
                        // What is beyond the last row is zeros.
                        let left = rows.saturating_sub(row) as u32;
                        words.iter_mut().for_each(|word| *word &= (1 << (8 * left)) - 1);
                    }
                    line.copy_from_slice(&words);
                }
            }
        }
    }

    /// A pair of columns of the right operand from the transpose of a matrix: from so many of its rows, from one on.
    pub(super) fn pack_transpose(matrix: Panels<'_>, row: usize, by: f32, to: &mut [u32]) {
        pack_rows(matrix.rows, row, by, to, |row, depth| matrix.sixty_four(row, depth));
    }

    /// The same from matrices that are turned round.
    pub(super) fn pack_turned(turned: Turned<'_>, row: usize, by: f32, to: &mut [u32]) {
        pack_rows(turned.rows, row, by, to, |row, depth| turned.sixty_four(row, depth));
    }

    /// 16 rows of the left operand from the transpose of a matrix: from 16 of its columns, from one on. The rows are as
    /// long as both slices have room for.
    pub(super) fn left_of_transpose(matrix: Matrix<'_>, column: usize, by: f32, upper: &mut [u32], lower: &mut [u32]) {
        let stride = upper.len() / TILE_COLUMNS;
        for depth in 0..stride / LINE_WORDS {
            let mut squares: [Square; 2] = [[[0; 16]; 16]; 2];
            let [of_upper, of_lower] = &mut squares;
            for (i, (h, l)) in of_upper.iter_mut().zip(of_lower).enumerate() {
                [*h, *l] = matrix.line(depth * DEPTH + 4 * i, column, by);
            }
            for (square, to) in squares.iter_mut().zip([&mut *upper, &mut *lower]) {
                transpose(square);
                for (row, to) in square.iter().zip(to.chunks_exact_mut(stride)) {
                    to[depth * LINE_WORDS..][..LINE_WORDS].copy_from_slice(row);
                }
            }
        }
    }
}
