//! Slices of numbers: multiples of the scale, as an upper and a lower byte each.
//!
//! A number x becomes q, the nearest multiple of 2^(e-15), ties to even; `upper = (q + 128) >> 8` and
//! `lower = q - 256 upper`, which both fit a signed byte. All of it is plain code that the compiler makes vectors of.

use super::block::TILE_COLUMNS;
use crate::simd::for_each_isa;

/// Added to a number below 2^22 it leaves the nearest integer in the lowest bits, ties to even.
const ROUND: f32 = 12_582_912.0;

/// The nearest multiple of the scale, in the lowest 16 bits; `by` is [`Scale::by`](super::scale::Scale::by).
#[inline(always)]
fn multiple(x: f32, by: f32) -> u32 {
    (x * by + ROUND).to_bits()
}

/// Upper and lower slice of a multiple, in the lowest bytes.
#[inline(always)]
fn split(q: u32) -> [u32; 2] {
    [q.wrapping_add(128) >> 8, q]
}

/// One line of a tile of the right operand: four rows of 16 columns, four numbers of a column beside each other.
pub(super) type Line = [u32; TILE_COLUMNS];

/// Both slices of a line.
#[inline(always)]
pub(super) fn line(rows: [&[f32; TILE_COLUMNS]; 4], by: f32) -> [Line; 2] {
    let mut lines = [[0; TILE_COLUMNS]; 2];
    for column in 0..TILE_COLUMNS {
        let of_row = |row: usize| split(multiple(rows[row][column], by));
        let [a, b, c, d] = [of_row(0), of_row(1), of_row(2), of_row(3)];
        for slice in 0..2 {
            lines[slice][column] =
                a[slice] & 255 | (b[slice] & 255) << 8 | (c[slice] & 255) << 16 | d[slice] << 24;
        }
    }
    lines
}

for_each_isa! {
    /// Both slices of numbers, in their order.
    pub(super) fn slice(x: &[f32], by: f32, upper: &mut [i8], lower: &mut [i8]) {
        for ((x, upper), lower) in x.iter().zip(upper).zip(lower) {
            let [h, l] = split(multiple(*x, by));
            *upper = h as i8;
            *lower = l as i8;
        }
    }
}

/// Both slices of 64 numbers, in words.
#[inline(always)]
pub(super) fn slice_words(numbers: &[f32; 64], by: f32) -> [Line; 2] {
    let (mut upper, mut lower) = ([0u8; 64], [0u8; 64]);
    for i in 0..64 {
        let [h, l] = split(multiple(numbers[i], by));
        upper[i] = h as u8;
        lower[i] = l as u8;
    }
    let words = |bytes: [u8; 64]| {
        let mut words = [0; TILE_COLUMNS];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        words
    };
    [words(upper), words(lower)]
}
