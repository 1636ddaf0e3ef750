//! The innermost loops: one tile of the output lives in registers while `k` runs.

use super::vector::Vector;

/// Numbers of a packed panel of B: it must fit the first-level cache beside a few rows of A.
const PANEL: usize = 6 * 1024;

/// At so many row tiles it pays to copy a panel of B together before it is used.
const PACK_FROM_TILES: usize = 8;

/// A product as the kernels see it: raw pointers and strides, checked by the caller.
#[derive(Clone, Copy)]
pub(super) struct Product {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) a: *const f32,
    /// Distance between A's rows and between its columns.
    pub(super) a_strides: (usize, usize),
    pub(super) b: *const f32,
    /// Distance between B's rows; its columns are adjacent.
    pub(super) b_stride: usize,
    pub(super) c: *mut f32,
    /// Distance between C's rows; its columns are adjacent.
    pub(super) c_stride: usize,
    /// Whether the product is added to what C holds.
    pub(super) accumulate: bool,
}

/// Rows of a register tile for 1, 2 and 3 vectors across; each number is a sum of powers of two below
/// it, so that the remainders need few kernels.
pub(super) trait Shape {
    const ROWS: [usize; 3];
}

/// For 32 vector registers.
pub(super) struct Registers32;
impl Shape for Registers32 {
    const ROWS: [usize; 3] = [16, 12, 8];
}

/// For 16 vector registers.
pub(super) struct Registers16;
impl Shape for Registers16 {
    const ROWS: [usize; 3] = [8, 6, 4];
}

/// Computes the whole product. Every element of C is one chain of fused multiply-adds in the order of
/// k, whatever the tiling: blocks of k go through memory exactly.
///
/// # Safety
/// All elements that `p` describes are accessible, and C overlaps neither A nor B.
#[inline(always)]
pub(super) unsafe fn product<V: Vector, S: Shape>(p: Product) {
    let panel_width = 3 * V::LANES;
    let block = PANEL / panel_width;
    let mut packed = [std::mem::MaybeUninit::<f32>::uninit(); PANEL];
    let packed = packed.as_mut_ptr().cast::<f32>();

    let mut k0 = 0;
    while k0 < p.k {
        let depth = block.min(p.k - k0);
        let mut j = 0;
        while j < p.n {
            let width = panel_width.min(p.n - j);
            let vectors = width.div_ceil(V::LANES);
            let rows = S::ROWS[vectors - 1];
            // SAFETY: rows k0..k0+depth and columns j..j+width lie inside the operands, and a panel of
            // depth x panel_width fits the packing buffer by the choice of `block`.
            unsafe {
                let mut part = Product {
                    k: depth,
                    n: width,
                    a: p.a.add(k0 * p.a_strides.1),
                    b: p.b.add(k0 * p.b_stride + j),
                    c: p.c.add(j),
                    accumulate: p.accumulate || k0 > 0,
                    ..p
                };
                if p.m >= PACK_FROM_TILES * rows && p.b_stride > width {
                    pack::<V>(part, packed);
                    part.b = packed;
                    part.b_stride = vectors * V::LANES;
                }
                match (vectors, width % V::LANES == 0) {
                    (1, true) => column::<V, S, 1, false>(part),
                    (1, false) => column::<V, S, 1, true>(part),
                    (2, true) => column::<V, S, 2, false>(part),
                    (2, false) => column::<V, S, 2, true>(part),
                    (_, true) => column::<V, S, 3, false>(part),
                    (_, false) => column::<V, S, 3, true>(part),
                }
            }
            j += width;
        }
        k0 += depth;
    }
}

/// Copies a panel of B together, each row filled up to whole vectors.
///
/// # Safety
/// `p.k` rows of `p.n` numbers are readable, and so many whole vectors are writable at `to`.
#[inline(always)]
unsafe fn pack<V: Vector>(p: Product, to: *mut f32) {
    let vectors = p.n.div_ceil(V::LANES);
    let tail = p.n - (vectors - 1) * V::LANES;
    for k in 0..p.k {
        // SAFETY: row k of the panel, whole vectors but for the last, which has `tail` numbers.
        unsafe {
            let (from, to) = (p.b.add(k * p.b_stride), to.add(k * vectors * V::LANES));
            for v in 0..vectors - 1 {
                V::load(from.add(v * V::LANES)).store(to.add(v * V::LANES));
            }
            let last = (vectors - 1) * V::LANES;
            V::load_first(from.add(last), tail).store(to.add(last));
        }
    }
}

/// One column of tiles, `NV` vectors wide, from the first row to the last.
///
/// # Safety
/// As for [`product`].
#[inline(always)]
unsafe fn column<V: Vector, S: Shape, const NV: usize, const TAIL: bool>(p: Product) {
    let mut i = 0;
    while i < p.m {
        let left = p.m - i;
        // SAFETY: the tile's rows i..i+rows lie inside A and C.
        unsafe {
            let part = Product {
                a: p.a.add(i * p.a_strides.0),
                c: p.c.add(i * p.c_stride),
                ..p
            };
            let best = S::ROWS[NV - 1];
            i += match left.min(best) {
                16.. => tile::<V, 16, NV, TAIL>(part),
                12.. if best == 12 => tile::<V, 12, NV, TAIL>(part),
                8.. => tile::<V, 8, NV, TAIL>(part),
                6.. if best == 6 => tile::<V, 6, NV, TAIL>(part),
                4.. => tile::<V, 4, NV, TAIL>(part),
                2.. => tile::<V, 2, NV, TAIL>(part),
                _ => tile::<V, 1, NV, TAIL>(part),
            };
        }
    }
}

/// A tile of `MR` rows and `NV` vectors; with `TAIL` the last vector is only partly inside.
///
/// # Safety
/// As for [`product`], with at least `MR` rows and `p.n` columns.
#[inline(always)]
unsafe fn tile<V: Vector, const MR: usize, const NV: usize, const TAIL: bool>(p: Product) -> usize {
    let tail = p.n - (NV - 1) * V::LANES;
    let (a_row, a_column) = p.a_strides;
    // SAFETY: every access is to a row below MR, a column below p.n and a k below p.k.
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
                    *sum = load(p.c.add(i * p.c_stride), v);
                }
            }
        }
        for k in 0..p.k {
            let b_row = p.b.add(k * p.b_stride);
            let b: [V; NV] = std::array::from_fn(|v| load(b_row, v));
            let a_k = p.a.add(k * a_column);
            for (i, row) in sums.iter_mut().enumerate() {
                let a = V::splat(*a_k.add(i * a_row));
                for (sum, &b) in row.iter_mut().zip(&b) {
                    *sum = sum.fma(a, b);
                }
            }
        }
        for (i, row) in sums.iter().enumerate() {
            let c_row = p.c.add(i * p.c_stride);
            for (v, &sum) in row.iter().enumerate() {
                let at = c_row.add(v * V::LANES);
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
