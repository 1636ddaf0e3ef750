//! Transposes of small squares.

use super::block::TILE_COLUMNS;
use crate::simd::{Isa, for_each_isa};

/// 16 rows of 16 words.
pub(super) type Square = [[u32; TILE_COLUMNS]; TILE_COLUMNS];

/// Its rows become its columns.
#[inline]
pub(super) fn transpose(square: &mut Square) {
    #[cfg(target_arch = "x86_64")]
    if Isa::current() == Isa::Avx512 {
        // SAFETY: the machine has this level.
        return unsafe { wide(square) };
    }
    for i in 0..TILE_COLUMNS {
        for j in 0..i {
            let (upper, lower) = square.split_at_mut(i);
            std::mem::swap(&mut upper[j][i], &mut lower[0][j]);
        }
    }
}

/// The same in registers: words, pairs and quarters of vectors change places.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn wide(square: &mut Square) {
    use std::arch::x86_64::*;
    // SAFETY: a row is a vector.
    let load = |row: &[u32; TILE_COLUMNS]| unsafe { _mm512_loadu_si512(row.as_ptr().cast()) };
    let rows: [__m512i; TILE_COLUMNS] = std::array::from_fn(|i| load(&square[i]));
    let mut words = rows;
    for i in 0..8 {
        words[2 * i] = _mm512_unpacklo_epi32(rows[2 * i], rows[2 * i + 1]);
        words[2 * i + 1] = _mm512_unpackhi_epi32(rows[2 * i], rows[2 * i + 1]);
    }
    let mut pairs = words;
    for i in 0..4 {
        for j in 0..2 {
            let (x, y) = (words[4 * i + j], words[4 * i + j + 2]);
            pairs[4 * i + 2 * j] = _mm512_unpacklo_epi64(x, y);
            pairs[4 * i + 2 * j + 1] = _mm512_unpackhi_epi64(x, y);
        }
    }
    // Row i of `pairs` has in each quarter the words of column i % 4 + 4 * quarter, of the rows i / 4 * 4 and on.
    for i in 0..4 {
        let even = |a, b| _mm512_shuffle_i32x4(a, b, 0x88);
        let odd = |a, b| _mm512_shuffle_i32x4(a, b, 0xdd);
        let (a, b) = (pairs[i], pairs[i + 4]);
        let (c, d) = (pairs[i + 8], pairs[i + 12]);
        let (ab_even, ab_odd) = (even(a, b), odd(a, b));
        let (cd_even, cd_odd) = (even(c, d), odd(c, d));
        let columns = [
            (i, even(ab_even, cd_even)),
            (i + 4, even(ab_odd, cd_odd)),
            (i + 8, odd(ab_even, cd_even)),
            (i + 12, odd(ab_odd, cd_odd)),
        ];
        for (column, words) in columns {
            // SAFETY: a row is a vector.
            unsafe { _mm512_storeu_si512(square[column].as_mut_ptr().cast(), words) };
        }
    }
}

/// Words of 16 bytes each of four rows, which are so far apart.
#[inline(always)]
pub(super) fn four_rows(from: &[i8], width: usize) -> [u32; 16] {
    let row = |row: usize| -> &[i8; 16] {
        let row = from[row * width..].first_chunk();
        row.expect("a row has 16 bytes")
    };
    let [a, b, c, d] = [row(0), row(1), row(2), row(3)];
    let byte = |row: &[i8; 16], i: usize| u32::from(row[i] as u8);
    std::array::from_fn(|i| byte(a, i) | byte(b, i) << 8 | byte(c, i) << 16 | byte(d, i) << 24)
}

for_each_isa! {
    /// Writes the transpose of 64 rows of some bytes, a multiple of 16. Rows are so far apart, there and here.
    ///
    /// Words are made of four rows of a column each, and squares of these words are transposed.
    pub(super) fn transpose_bytes(from: &[i8], width: usize, columns: usize, to: &mut [i8], stride: usize) {
        for first in (0..columns).step_by(16) {
            let mut square: Square = [[0; 16]; 16];
            for (i, line) in square.iter_mut().enumerate() {
                *line = four_rows(&from[4 * i * width + first..], width);
            }
            transpose(&mut square);
            for (row, words) in square.iter().enumerate() {
                let to = &mut to[(first + row) * stride..][..64];
                for (to, word) in to.as_chunks_mut::<4>().0.iter_mut().zip(words) {
                    *to = word.to_le_bytes().map(|byte| byte as i8);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_columns() {
        let at = |i: usize, j: usize| (i * 100 + j) as u32;
        let mut square: Square = std::array::from_fn(|i| std::array::from_fn(|j| at(i, j)));
        transpose(&mut square);
        let expected: Square = std::array::from_fn(|i| std::array::from_fn(|j| at(j, i)));
        assert_eq!(square, expected);
    }

    #[test]
    fn rows_of_bytes_become_columns() {
        let at = |i: usize, j: usize| (i * 7 + j * 3) as i8;
        let (width, columns, stride) = (50, 48, 70);
        let from: Vec<i8> = (0..64 * width).map(|i| at(i / width, i % width)).collect();
        let mut to = vec![99; columns * stride];
        transpose_bytes(&from, width, columns, &mut to, stride);
        for i in 0..columns {
            for j in 0..stride {
                let expected = if j < 64 { at(j, i) } else { 99 };
                assert_eq!(to[i * stride + j], expected);
            }
        }
    }
}
