//! Blocks of sums by AVX-512 with VNNI.
//!
//! Its instruction multiplies unsigned bytes by signed ones. So 128 is added to the right operand's numbers, by flipping
//! a bit, and 128 times the sums of the left operand's rows are taken off in the end. Between the two, sums of 32 bits
//! may wrap, which does no harm: what comes out fits.

use super::block::{Block, DEPTH, Left, ROWS, Sums, TILE};
use std::arch::x86_64::*;

/// Adds the sums of a block to those that are there.
///
/// # Safety
/// The machine has AVX-512 with VNNI, and the operands are as long as the block says.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) unsafe fn add(block: &Block<'_>, sums: &mut Sums) {
    // SAFETY: by this function's contract.
    unsafe {
        let excess = excess(block.left, block.offsets);
        if block.tiles == 2 {
            rows::<6, 2>(block, 0, &excess, sums);
            rows::<5, 2>(block, 6, &excess, sums);
            rows::<5, 2>(block, 11, &excess, sums);
        } else {
            rows::<8, 1>(block, 0, &excess, sums);
            rows::<8, 1>(block, 8, &excess, sums);
        }
    }
}

/// What 128 added to all of the right operand adds to the sums of each row: to those of upper slices, and to mixed ones.
///
/// # Safety
/// As for [`add`].
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn excess(left: Left<'_>, offsets: &[usize]) -> [[i32; 2]; ROWS] {
    let flip = _mm512_set1_epi8(-128);
    let mut excess = [[0; 2]; ROWS];
    for (row, excess) in excess.iter_mut().enumerate() {
        let (mut upper, mut lower) = (_mm512_setzero_si512(), _mm512_setzero_si512());
        for offset in offsets {
            let at = row * left.stride + offset;
            // SAFETY: within the row.
            let load = |slice: &[i8]| unsafe { _mm512_loadu_si512(slice.as_ptr().add(at).cast()) };
            upper = _mm512_dpbusd_epi32(upper, flip, load(left.upper));
            lower = _mm512_dpbusd_epi32(lower, flip, load(left.lower));
        }
        let both = _mm512_add_epi32(upper, lower);
        *excess = [
            _mm512_reduce_add_epi32(upper),
            _mm512_reduce_add_epi32(both),
        ];
    }
    excess
}

/// `COUNT` rows from `first` on, of `TILES` tiles.
///
/// # Safety
/// As for [`add`].
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
#[inline]
unsafe fn rows<const COUNT: usize, const TILES: usize>(
    block: &Block<'_>,
    first: usize,
    excess: &[[i32; 2]; ROWS],
    sums: &mut Sums,
) {
    let Left {
        upper,
        lower,
        stride,
    } = block.left;
    let flip = _mm512_set1_epi8(-128);
    let mut of_upper = [[_mm512_setzero_si512(); TILES]; COUNT];
    let mut mixed = of_upper;
    for (depth, offset) in block.offsets.iter().enumerate() {
        for line in 0..DEPTH / 4 {
            let at = depth * TILES * 2 * TILE + line * 64;
            // SAFETY: within the tiles of this depth.
            let load = |tile: usize| unsafe {
                let from = block.right.as_ptr().add(at + tile * TILE);
                _mm512_xor_si512(_mm512_loadu_si512(from.cast()), flip)
            };
            let right: [[__m512i; 2]; TILES] =
                std::array::from_fn(|tile| [load(2 * tile), load(2 * tile + 1)]);
            for row in 0..COUNT {
                let at = (first + row) * stride + offset + line * 4;
                // SAFETY: within the row.
                let four = |slice: &[i8]| unsafe {
                    _mm512_set1_epi32(slice.as_ptr().add(at).cast::<i32>().read_unaligned())
                };
                let (h, l) = (four(upper), four(lower));
                for tile in 0..TILES {
                    let [rh, rl] = right[tile];
                    of_upper[row][tile] = _mm512_dpbusd_epi32(of_upper[row][tile], rh, h);
                    mixed[row][tile] = _mm512_dpbusd_epi32(mixed[row][tile], rl, h);
                    mixed[row][tile] = _mm512_dpbusd_epi32(mixed[row][tile], rh, l);
                }
            }
        }
    }
    for row in 0..COUNT {
        let excess = excess[first + row];
        for tile in 0..TILES {
            let sums = &mut sums.0[tile];
            let places = [&mut sums.upper[first + row], &mut sums.mixed[first + row]];
            let found = [of_upper[row][tile], mixed[row][tile]];
            for ((to, found), excess) in places.into_iter().zip(found).zip(excess) {
                let found = _mm512_sub_epi32(found, _mm512_set1_epi32(excess));
                // SAFETY: a row of sums is a vector.
                unsafe {
                    let before = _mm512_loadu_si512(to.as_ptr().cast());
                    let sum = _mm512_add_epi32(before, found);
                    _mm512_storeu_si512(to.as_mut_ptr().cast(), sum);
                }
            }
        }
    }
}
