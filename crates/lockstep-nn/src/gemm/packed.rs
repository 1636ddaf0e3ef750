//! Products with a matrix that does not change, and is laid out once as the registers take it.
//!
//! Weights of a network that only computes forwards are used over and over. Here they lie in panels of
//! [`PANEL`] columns, each read from its first number to its last. A tile of the output stays in
//! registers while the depth runs, and is finished there: bias, limits and what is added to it cost no
//! pass of their own. Each number is one chain, as everywhere ([`super`]), which begins with the bias.

use super::tile::tile_rows;
use super::vector::{Kernel, Vector, dispatch};
use crate::buffer::Buffer;
use crate::threads::{Grid, SharedMut, Threads};
use std::mem::MaybeUninit;
use std::ops::Range;

/// Columns of a panel: three vectors of the widest kind.
const PANEL: usize = 48;

/// Rows that go together: so many of A stay in the second-level cache while all panels go by.
const ROWS: usize = 400;

/// The depth that a panel is cut into: so much of it stays in the second-level cache for all rows.
const DEPTH: usize = 768;

/// Rows of a panel between the one in use and the one that is fetched.
const AHEAD: usize = 8;

/// A matrix in panels, and the bias of its columns.
pub(crate) struct Panels {
    depth: usize,
    columns: usize,
    /// Panel by panel, row by row; the last is filled up with zeros.
    data: Buffer,
    /// As long as all panels are wide.
    bias: Buffer,
}

impl Panels {
    /// Lays out a matrix that comes column by column, as PyTorch keeps weights.
    ///
    /// # Panics
    /// When the matrix has no rows, or not as many columns as the bias has numbers.
    pub(crate) fn new(depth: usize, matrix: &[f32], bias: &[f32]) -> Self {
        let columns = bias.len();
        assert!(depth > 0, "a matrix has rows");
        assert_eq!(matrix.len(), depth * columns, "numbers of the matrix");
        let panels = columns.div_ceil(PANEL);
        let mut data = Buffer::large(panels * depth * PANEL);
        for (i, column) in matrix.chunks_exact(depth).enumerate() {
            let panel = &mut data[i / PANEL * depth * PANEL..][..depth * PANEL];
            for (row, &x) in panel.chunks_exact_mut(PANEL).zip(column) {
                row[i % PANEL] = x;
            }
        }
        let mut padded = Buffer::zeros(panels * PANEL);
        padded[..columns].copy_from_slice(bias);
        Self {
            depth,
            columns,
            data,
            bias: padded,
        }
    }
}

/// What becomes of a product's numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Finish {
    /// They replace C.
    Replace,
    /// They replace C, at least the first and at most the second.
    Clamp(f32, f32),
    /// They are added to C.
    Add,
    /// They replace C, and the function then changes them, a part of a row at a time.
    Map(fn(&mut [f32])),
}

/// C = A B + bias, or as `finish` says, on these threads. Rows of A and C follow each other.
pub(crate) fn packed(threads: &Threads, a: &[f32], b: &Panels, c: &mut [f32], finish: Finish) {
    let rows = c.len() / b.columns;
    assert_eq!((a.len(), c.len()), (rows * b.depth, rows * b.columns));
    let work = rows * b.columns * b.depth;
    let grid = Grid::new(threads, (rows, ROW_UNIT), (b.columns, PANEL), work);
    let c = SharedMut::new(c);
    threads.each(0..grid.count(), |_, tile| {
        let (rows, columns) = grid.tile(tile);
        dispatch(Packed {
            a,
            b,
            c: &c,
            rows,
            columns,
            finish,
        });
    });
}

/// Rows of a tile are a multiple of these.
const ROW_UNIT: usize = 8;

/// Some rows and columns of the product. The columns begin with a panel, and nobody else uses this part of C.
struct Packed<'a> {
    a: &'a [f32],
    b: &'a Panels,
    c: &'a SharedMut<'a, f32>,
    rows: Range<usize>,
    columns: Range<usize>,
    finish: Finish,
}

impl Kernel for Packed<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        let Self { a, b, c, .. } = self;
        let mut sums = [MaybeUninit::<f32>::uninit(); ROWS * PANEL];
        let sums = sums.as_mut_ptr().cast::<f32>();
        for top in self.rows.clone().step_by(ROWS) {
            let rows = ROWS.min(self.rows.end - top);
            for left in self.columns.clone().step_by(3 * V::LANES) {
                let width = (self.columns.end - left).min(3 * V::LANES);
                // SAFETY: the rows and columns lie inside of A and C, which `packed` has made sure of, and the sums
                // have room for as many.
                unsafe {
                    let c = c.pointer(top * b.columns);
                    let part = (rows, left, width);
                    columns::<V>(&a[top * b.depth..], b, c, self.finish, part, sums);
                };
                if let Finish::Map(map) = self.finish {
                    for row in top..top + rows {
                        let at = row * b.columns + left;
                        // SAFETY: nobody else uses this part of C.
                        map(unsafe { c.part(at..at + width) });
                    }
                }
            }
        }
    }
}

/// Some columns of a product, all of the depth.
///
/// # Safety
/// A and C, from where they are given, have so many rows, C as many columns from `left` on, which begins a vector, and `sums` has room
/// for [`ROWS`] rows of a panel.
#[inline(always)]
unsafe fn columns<V: Vector>(
    a: &[f32],
    b: &Panels,
    c: *mut f32,
    finish: Finish,
    (rows, left, width): (usize, usize, usize),
    sums: *mut f32,
) {
    // Narrow vectors take a panel in two halves.
    let (panel, within) = (left / PANEL, left % PANEL);
    for from in (0..b.depth).step_by(DEPTH) {
        let part = DEPTH.min(b.depth - from);
        // SAFETY: by this function's contract; the panel has whole vectors from `within` on, as has the
        // bias.
        unsafe {
            let strip = Strip {
                depth: part,
                a: a.as_ptr().add(from),
                a_stride: b.depth,
                b: b.data
                    .as_ptr()
                    .add((panel * b.depth + from) * PANEL + within),
                bias: b.bias.as_ptr().add(left),
                sums,
                c: c.add(left),
                c_stride: b.columns,
                width,
                first: from == 0,
                last: from + part == b.depth,
                finish,
            };
            match width.div_ceil(V::LANES) {
                1 => strip.run::<V, 1>(rows),
                2 => strip.run::<V, 2>(rows),
                _ => strip.run::<V, 3>(rows),
            }
        }
    }
}

/// Up to three vectors across, all rows, and a part of the depth.
#[derive(Clone, Copy)]
struct Strip {
    depth: usize,
    a: *const f32,
    a_stride: usize,
    /// Rows [`PANEL`] apart.
    b: *const f32,
    bias: *const f32,
    /// Where unfinished sums wait, rows [`PANEL`] apart.
    sums: *mut f32,
    c: *mut f32,
    c_stride: usize,
    /// Columns of C.
    width: usize,
    /// Whether the chains begin here, with the bias.
    first: bool,
    /// Whether they end here.
    last: bool,
    finish: Finish,
}

impl Strip {
    /// # Safety
    /// A, C and the sums have so many rows; B and the bias have `NV` whole vectors.
    #[inline(always)]
    unsafe fn run<V: Vector, const NV: usize>(self, rows: usize) {
        let mut i = 0;
        while i < rows {
            // SAFETY: the tile's rows are below `rows`.
            unsafe {
                let at = Self {
                    a: self.a.add(i * self.a_stride),
                    sums: self.sums.add(i * PANEL),
                    c: self.c.add(i * self.c_stride),
                    ..self
                };
                // The conditions keep tiles that no level uses from being compiled.
                i += match tile_rows(rows - i, V::TILE_ROWS[2]) {
                    8 if const { V::TILE_ROWS[2] >= 8 } => at.tile::<V, NV, 8>(),
                    7 if const { V::TILE_ROWS[2] >= 7 } => at.tile::<V, NV, 7>(),
                    6 if const { V::TILE_ROWS[2] >= 6 } => at.tile::<V, NV, 6>(),
                    5 if const { V::TILE_ROWS[2] >= 5 } => at.tile::<V, NV, 5>(),
                    4 if const { V::TILE_ROWS[2] >= 4 } => at.tile::<V, NV, 4>(),
                    3 if const { V::TILE_ROWS[2] >= 3 } => at.tile::<V, NV, 3>(),
                    2 if const { V::TILE_ROWS[2] >= 2 } => at.tile::<V, NV, 2>(),
                    _ => at.tile::<V, NV, 1>(),
                };
            }
        }
    }

    /// A tile of `MR` rows.
    ///
    /// # Safety
    /// As for [`Strip::run`], with at least `MR` rows.
    #[inline(always)]
    unsafe fn tile<V: Vector, const NV: usize, const MR: usize>(self) -> usize {
        // SAFETY: every access is to a row below MR and to whole vectors of B, the bias and the sums; in
        // C only to columns below `width`.
        unsafe {
            let mut sums = [[V::zero(); NV]; MR];
            for (i, row) in sums.iter_mut().enumerate() {
                let from = match self.first {
                    true => self.bias,
                    false => self.sums.add(i * PANEL),
                };
                for (v, sum) in row.iter_mut().enumerate() {
                    *sum = V::load(from.add(v * V::LANES));
                }
            }
            let (mut a, mut b) = (self.a, self.b);
            for _ in 0..self.depth {
                for v in 0..NV {
                    V::prefetch(b.wrapping_add(AHEAD * PANEL + v * V::LANES));
                }
                let right: [V; NV] = std::array::from_fn(|v| V::load(b.add(v * V::LANES)));
                for (i, row) in sums.iter_mut().enumerate() {
                    let left = V::splat(*a.add(i * self.a_stride));
                    for (sum, &right) in row.iter_mut().zip(&right) {
                        *sum = sum.fma(left, right);
                    }
                }
                a = a.wrapping_add(1);
                b = b.wrapping_add(PANEL);
            }
            // Plain loops, each of one thing: they are unrolled, and the sums stay in registers.
            if !self.last {
                for (i, row) in sums.iter().enumerate() {
                    for (v, sum) in row.iter().enumerate() {
                        sum.store(self.sums.add(i * PANEL + v * V::LANES));
                    }
                }
                return MR;
            }
            let tail = self.width - (NV - 1) * V::LANES;
            let place = |i: usize, v: usize| self.c.add(i * self.c_stride + v * V::LANES);
            match self.finish {
                Finish::Replace | Finish::Map(_) => {}
                Finish::Clamp(low, high) => {
                    for row in &mut sums {
                        for sum in row {
                            *sum = sum.clamp(low, high);
                        }
                    }
                }
                Finish::Add => {
                    for (i, row) in sums.iter_mut().enumerate() {
                        for (v, sum) in row.iter_mut().enumerate() {
                            let old = match v == NV - 1 {
                                true => V::load_first(place(i, v), tail),
                                false => V::load(place(i, v)),
                            };
                            *sum = old.add(*sum);
                        }
                    }
                }
            }
            for (i, row) in sums.iter().enumerate() {
                for (v, sum) in row.iter().enumerate() {
                    match v == NV - 1 {
                        true => sum.store_first(place(i, v), tail),
                        false => sum.store(place(i, v)),
                    }
                }
            }
        }
        MR
    }
}

#[cfg(test)]
mod tests {
    use super::super::vector::Plain;
    use super::*;
    use proptest::prelude::*;

    fn numbers(seed: u64, len: usize) -> Vec<f32> {
        let mut stream = lockstep_base::random::Stream::new(seed, 0);
        (0..len).map(|_| stream.unit_f32() - 0.5).collect()
    }

    fn twice(x: &mut [f32]) {
        for x in x {
            *x *= 2.0;
        }
    }

    /// Compares the machine's level and plain code with the definition, to the bit.
    fn check((rows, columns, depth): (usize, usize, usize), finish: Finish) {
        let a = numbers(1, rows * depth);
        let matrix = numbers(2, columns * depth);
        let bias = numbers(3, columns);
        let start = numbers(4, rows * columns);
        let mut expected = start.clone();
        for i in 0..rows {
            for j in 0..columns {
                let chain = (0..depth).fold(bias[j], |sum, k| {
                    a[i * depth + k].mul_add(matrix[j * depth + k], sum)
                });
                let to = &mut expected[i * columns + j];
                *to = match finish {
                    Finish::Replace => chain,
                    Finish::Clamp(low, high) => chain.clamp(low, high),
                    Finish::Add => *to + chain,
                    Finish::Map(_) => chain * 2.0,
                };
            }
        }
        let b = Panels::new(depth, &matrix, &bias);
        for plain in [false, true] {
            let mut c = start.clone();
            match plain {
                true => Packed {
                    a: &a,
                    b: &b,
                    c: &SharedMut::new(&mut c),
                    rows: 0..rows,
                    columns: 0..columns,
                    finish,
                }
                .run::<Plain>(),
                false => packed(&Threads::default(), &a, &b, &mut c, finish),
            }
            let mut same = c.iter().zip(&expected);
            assert!(
                same.all(|(x, y)| x.to_bits() == y.to_bits()),
                "{rows} x {columns} x {depth}, plain: {plain}"
            );
        }
    }

    #[test]
    fn depths_of_several_parts_are_one_chain() {
        for depth in [1, DEPTH - 1, DEPTH, DEPTH + 1, 2 * DEPTH + 5] {
            check((9, 50, depth), Finish::Add);
        }
        check((ROWS, 17, 30), Finish::Replace);
        check((2 * ROWS + 3, 5, 4), Finish::Add);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn odd_shapes_give_the_bits_of_the_definition(
            rows in 0usize..40, columns in 1usize..150, depth in 1usize..60, how in 0usize..4,
        ) {
            let finish = [Finish::Replace, Finish::Clamp(0.0, 0.1), Finish::Add, Finish::Map(twice)][how];
            check((rows, columns, depth), finish);
        }
    }
}
