//! Blocks of sums by AVX2: numbers are widened to 16 bits, and multiplied and added in pairs.

use super::block::{Block, DEPTH, Left, ROWS, Sums, TILE};
use std::arch::x86_64::*;

/// Rows that are computed together: as many as the registers hold.
const TOGETHER: usize = 2;

/// Adds the sums of a block to those that are there.
///
/// # Safety
/// The machine has AVX2, and the operands are as long as the block says.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn add(block: &Block<'_>, sums: &mut Sums) {
    let Left {
        upper,
        lower,
        stride,
    } = block.left;
    let mut wide = [[[0i16; DEPTH]; 2]; ROWS];
    for (depth, offset) in block.offsets.iter().enumerate() {
        for (row, wide) in wide.iter_mut().enumerate() {
            let at = row * stride + offset;
            for (slice, wide) in [upper, lower].into_iter().zip(wide) {
                let numbers = slice[at..at + DEPTH].iter();
                wide.iter_mut()
                    .zip(numbers)
                    .for_each(|(to, &x)| *to = x.into());
            }
        }
        for (tile, sums) in sums.0.iter_mut().enumerate().take(block.tiles) {
            let right = &block.right[(depth * block.tiles + tile) * 2 * TILE..][..2 * TILE];
            for first in (0..ROWS).step_by(TOGETHER) {
                for half in 0..2 {
                    // SAFETY: the tile is whole, and there are as many rows.
                    let found = unsafe { eight_columns(&wide[first..], right, half) };
                    for (row, [upper, mixed]) in found.into_iter().enumerate() {
                        let places = [&mut sums.upper[first + row], &mut sums.mixed[first + row]];
                        for (to, found) in places.into_iter().zip([upper, mixed]) {
                            let to = &mut to[half * 8..];
                            // SAFETY: eight sums are a vector.
                            unsafe {
                                let before = _mm256_loadu_si256(to.as_ptr().cast());
                                let sum = _mm256_add_epi32(before, found);
                                _mm256_storeu_si256(to.as_mut_ptr().cast(), sum);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Sums of upper slices and mixed ones of some rows and half a tile's columns.
///
/// # Safety
/// The machine has AVX2; `rows` are at least [`TOGETHER`], and `right` is both slices of a tile.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn eight_columns(
    rows: &[[[i16; DEPTH]; 2]],
    right: &[i8],
    half: usize,
) -> [[__m256i; 2]; TOGETHER] {
    // Of each: upper and mixed sums, of four columns and the four after them, two sums for each.
    let mut sums = [[[_mm256_setzero_si256(); 2]; 2]; TOGETHER];
    for line in 0..DEPTH / 4 {
        // SAFETY: within both slices of the tile.
        let load = |at: usize| unsafe {
            let from = right.as_ptr().add(line * 64 + half * 32 + at);
            _mm256_cvtepi8_epi16(_mm_loadu_si128(from.cast()))
        };
        let (upper, lower) = ([load(0), load(16)], [load(TILE), load(TILE + 16)]);
        for (row, [of_upper, mixed]) in rows.iter().zip(&mut sums) {
            // SAFETY: four numbers of a row of `DEPTH`.
            let four = |slice: &[i16; DEPTH]| unsafe {
                let from = slice.as_ptr().add(line * 4).cast::<i64>();
                _mm256_set1_epi64x(from.read_unaligned())
            };
            let (h, l) = (four(&row[0]), four(&row[1]));
            for i in 0..2 {
                of_upper[i] = _mm256_add_epi32(of_upper[i], _mm256_madd_epi16(h, upper[i]));
                mixed[i] = _mm256_add_epi32(mixed[i], _mm256_madd_epi16(h, lower[i]));
                mixed[i] = _mm256_add_epi32(mixed[i], _mm256_madd_epi16(l, upper[i]));
            }
        }
    }
    // Neighbours are added within each half of a vector, which leaves pairs of columns out of order.
    sums.map(|sums| {
        sums.map(|[first, second]| {
            _mm256_permute4x64_epi64(_mm256_hadd_epi32(first, second), 0b11_01_10_00)
        })
    })
}
