//! The innermost loops: one tile of the output lives in registers while the depth runs.

use super::vector::Vector;
use super::{Span, Walk};

/// Numbers of a packed panel of B: it must fit the first-level cache beside a few rows of A.
pub(super) const PANEL: usize = 6 * 1024;

/// At so many row tiles it pays to copy a panel of B together before it is used.
const PACK_FROM_TILES: usize = 8;

/// A product as the kernels see it: raw pointers and strides, checked by the caller.
#[derive(Clone, Copy)]
pub(super) struct Product {
    pub(super) rows: Span,
    pub(super) columns: usize,
    pub(super) depth: Span,
    pub(super) a: *const f32,
    pub(super) a_rows: Walk,
    pub(super) a_depth: Walk,
    pub(super) b: *const f32,
    /// Distance between B's rows; its columns are adjacent.
    pub(super) b_stride: usize,
    pub(super) c: *mut f32,
    /// How C's rows lie; its columns are adjacent.
    pub(super) c_rows: Walk,
    /// Whether the chains begin with what C holds.
    pub(super) accumulate: bool,
    /// Whether what C holds is added to the finished chains.
    pub(super) add_whole: bool,
}

/// Computes the whole product. Every element of C is one chain of fused multiply-adds in the order of
/// the depth, whatever the tiling: parts of the depth go through memory exactly.
///
/// # Safety
/// All elements that `p` describes are accessible, and C overlaps neither A nor B.
#[inline(always)]
pub(super) unsafe fn product<V: Vector>(p: Product) {
    let part = part_of(p.depth, PANEL / (3 * V::LANES));
    let mut done = 0;
    for outer in (0..p.depth.outer).step_by(part.outer) {
        for middle in (0..p.depth.middle).step_by(part.middle) {
            for inner in (0..p.depth.inner).step_by(part.inner) {
                let depth = Span {
                    outer: part.outer.min(p.depth.outer - outer),
                    middle: part.middle.min(p.depth.middle - middle),
                    inner: part.inner.min(p.depth.inner - inner),
                };
                // SAFETY: the part lies inside the operands' depth.
                unsafe {
                    panels::<V>(Product {
                        depth,
                        a: p.a.add(p.a_depth.place(outer, middle, inner)),
                        b: p.b.add(done * p.b_stride),
                        accumulate: p.accumulate || done > 0,
                        ..p
                    });
                }
                done += depth.len();
            }
        }
    }
}

/// The parts that a depth is cut into, none longer than `most`: a part of an innermost loop, or several
/// whole ones, or several whole loops around those.
fn part_of(depth: Span, most: usize) -> Span {
    let Span {
        outer,
        middle,
        inner,
    } = depth;
    if inner > most {
        let parts = inner.div_ceil(most);
        Span::flat(inner.div_ceil(parts))
    } else if middle * inner > most {
        Span {
            outer: 1,
            middle: most / inner,
            inner,
        }
    } else {
        Span {
            outer: (most / (middle * inner)).min(outer),
            middle,
            inner,
        }
    }
}

/// A product whose depth is one block: its columns, panel by panel.
///
/// # Safety
/// As for [`product`]; `depth x 3` vectors fit a packed panel.
#[inline(always)]
unsafe fn panels<V: Vector>(p: Product) {
    let mut packed = [std::mem::MaybeUninit::<f32>::uninit(); PANEL];
    let packed = packed.as_mut_ptr().cast::<f32>();
    let mut j = 0;
    while j < p.columns {
        // Four vectors are two and two: a single one would leave registers unused.
        let vectors = match (p.columns - j).div_ceil(V::LANES) {
            4 => 2,
            left => left.min(3),
        };
        let width = (vectors * V::LANES).min(p.columns - j);
        let tiles = p.rows.outer * p.rows.middle * p.rows.inner.div_ceil(V::TILE_ROWS[vectors - 1]);
        // SAFETY: columns j..j+width lie inside B and C, and the panel fits the packing buffer.
        unsafe {
            let mut part = Product {
                columns: width,
                b: p.b.add(j),
                c: p.c.add(j),
                ..p
            };
            if tiles >= PACK_FROM_TILES && p.b_stride > width {
                pack::<V>(part, packed);
                part.b = packed;
                part.b_stride = vectors * V::LANES;
            }
            match (vectors, width.is_multiple_of(V::LANES)) {
                (1, true) => panel::<V, 1, false>(part),
                (1, false) => panel::<V, 1, true>(part),
                (2, true) => panel::<V, 2, false>(part),
                (2, false) => panel::<V, 2, true>(part),
                (_, true) => panel::<V, 3, false>(part),
                (_, false) => panel::<V, 3, true>(part),
            }
        }
        j += width;
    }
}

/// Copies a panel of B together, each row filled up to whole vectors.
///
/// # Safety
/// The panel is readable, and so many whole vectors are writable at `to`.
#[inline(always)]
unsafe fn pack<V: Vector>(p: Product, to: *mut f32) {
    let vectors = p.columns.div_ceil(V::LANES);
    let last = (vectors - 1) * V::LANES;
    for k in 0..p.depth.len() {
        // SAFETY: row k of the panel, whole vectors but for the last, which may be cut.
        unsafe {
            let (from, to) = (p.b.add(k * p.b_stride), to.add(k * vectors * V::LANES));
            for v in 0..vectors - 1 {
                V::load(from.add(v * V::LANES)).store(to.add(v * V::LANES));
            }
            V::load_first(from.add(last), p.columns - last).store(to.add(last));
        }
    }
}

/// One panel, `NV` vectors wide, from the first row to the last.
///
/// # Safety
/// As for [`product`].
#[inline(always)]
unsafe fn panel<V: Vector, const NV: usize, const TAIL: bool>(p: Product) {
    for outer in 0..p.rows.outer {
        for middle in 0..p.rows.middle {
            let mut i = 0;
            while i < p.rows.inner {
                // SAFETY: the tile's rows lie inside A and C.
                unsafe {
                    let part = Product {
                        a: p.a.add(p.a_rows.place(outer, middle, i)),
                        c: p.c.add(p.c_rows.place(outer, middle, i)),
                        ..p
                    };
                    // The conditions keep tiles that no level uses from being compiled.
                    i += match tile_rows(p.rows.inner - i, V::TILE_ROWS[NV - 1]) {
                        16 if const { V::TILE_ROWS[NV - 1] >= 16 } => tile::<V, 16, NV, TAIL>(part),
                        15 if const { V::TILE_ROWS[NV - 1] >= 15 } => tile::<V, 15, NV, TAIL>(part),
                        14 if const { V::TILE_ROWS[NV - 1] >= 14 } => tile::<V, 14, NV, TAIL>(part),
                        13 if const { V::TILE_ROWS[NV - 1] >= 13 } => tile::<V, 13, NV, TAIL>(part),
                        12 if const { V::TILE_ROWS[NV - 1] >= 12 } => tile::<V, 12, NV, TAIL>(part),
                        11 if const { V::TILE_ROWS[NV - 1] >= 11 } => tile::<V, 11, NV, TAIL>(part),
                        10 if const { V::TILE_ROWS[NV - 1] >= 10 } => tile::<V, 10, NV, TAIL>(part),
                        9 if const { V::TILE_ROWS[NV - 1] >= 9 } => tile::<V, 9, NV, TAIL>(part),
                        8 if const { V::TILE_ROWS[NV - 1] >= 8 } => tile::<V, 8, NV, TAIL>(part),
                        7 if const { V::TILE_ROWS[NV - 1] >= 7 } => tile::<V, 7, NV, TAIL>(part),
                        6 if const { V::TILE_ROWS[NV - 1] >= 6 } => tile::<V, 6, NV, TAIL>(part),
                        5 if const { V::TILE_ROWS[NV - 1] >= 5 } => tile::<V, 5, NV, TAIL>(part),
                        4 if const { V::TILE_ROWS[NV - 1] >= 4 } => tile::<V, 4, NV, TAIL>(part),
                        3 if const { V::TILE_ROWS[NV - 1] >= 3 } => tile::<V, 3, NV, TAIL>(part),
                        2 if const { V::TILE_ROWS[NV - 1] >= 2 } => tile::<V, 2, NV, TAIL>(part),
                        _ => tile::<V, 1, NV, TAIL>(part),
                    };
                }
            }
        }
    }
}

/// How many rows the next tile takes of those that are left: as few tiles as fit the registers, and all
/// about the same size, since a sliver leaves the multipliers waiting.
#[inline(always)]
pub(super) fn tile_rows(left: usize, most: usize) -> usize {
    left.div_ceil(left.div_ceil(most))
}

/// A tile of `MR` rows and `NV` vectors; with `TAIL` the last vector is only partly inside.
///
/// # Safety
/// As for [`product`], with at least `MR` inner rows.
#[inline(always)]
unsafe fn tile<V: Vector, const MR: usize, const NV: usize, const TAIL: bool>(p: Product) -> usize {
    let tail = p.columns - (NV - 1) * V::LANES;
    // SAFETY: every access is to a row below MR, a column below p.columns and a depth inside p.depth.
    unsafe {
        let load = |base: *const f32, v: usize| {
            let at = base.add(v * V::LANES);
            if TAIL && v == NV - 1 {
                V::load_first(at, tail)
            } else {
                V::load(at)
            }
        };
        let mut sums = [[V::zero(); NV]; MR];
        if p.accumulate {
            for (i, row) in sums.iter_mut().enumerate() {
                for (v, sum) in row.iter_mut().enumerate() {
                    *sum = load(p.c.add(i * p.c_rows.inner), v);
                }
            }
        }
        let mut b_row = p.b;
        for outer in 0..p.depth.outer {
            for middle in 0..p.depth.middle {
                let mut a_k = p.a.add(p.a_depth.place(outer, middle, 0));
                for _ in 0..p.depth.inner {
                    let b: [V; NV] = std::array::from_fn(|v| load(b_row, v));
                    for (i, row) in sums.iter_mut().enumerate() {
                        let a = V::splat(*a_k.add(i * p.a_rows.inner));
                        for (sum, &b) in row.iter_mut().zip(&b) {
                            *sum = sum.fma(a, b);
                        }
                    }
                    a_k = a_k.wrapping_add(p.a_depth.inner);
                    b_row = b_row.wrapping_add(p.b_stride);
                }
            }
        }
        for (i, row) in sums.iter().enumerate() {
            let c_row = p.c.add(i * p.c_rows.inner);
            for (v, &sum) in row.iter().enumerate() {
                let at = c_row.add(v * V::LANES);
                let sum = if p.add_whole {
                    load(c_row, v).add(sum)
                } else {
                    sum
                };
                if TAIL && v == NV - 1 {
                    sum.store_first(at, tail);
                } else {
                    sum.store(at);
                }
            }
        }
    }
    MR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_any_number_of_rows_with_sizes_that_exist() {
        for most in [4, 6, 8, 12, 16] {
            for rows in 1..100 {
                let mut left = rows;
                while left > 0 {
                    let tile = tile_rows(left, most);
                    assert!(tile <= left.min(most), "{tile} of {left} at most {most}");
                    left -= tile;
                }
            }
        }
        assert_eq!((tile_rows(14, 12), tile_rows(7, 7)), (7, 7));
    }

    #[test]
    fn parts_of_a_depth_are_not_longer_than_a_panel() {
        for (outer, middle, inner) in [(1, 1, 300), (2, 3, 96), (16, 7, 7), (4, 5, 129), (9, 1, 1)]
        {
            let depth = Span {
                outer,
                middle,
                inner,
            };
            let part = part_of(depth, 128);
            assert!(part.len() <= 128, "{part:?}");
            assert!(part.outer <= outer && part.middle <= middle && part.inner <= inner);
        }
    }
}
