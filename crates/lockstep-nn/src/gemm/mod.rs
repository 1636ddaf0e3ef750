//! Matrix products whose every output is one chain of fused multiply-adds in the order of the depth.
//!
//! That order is the whole of the numerics: it depends neither on the machine's vector width, nor on
//! the tiling, nor on how many rows are computed in one call, so the same inputs give the same bits on
//! every machine. Vectors run across the columns of C; A's elements are broadcast from wherever they
//! lie, so A may be transposed for nothing. B's and C's rows are contiguous.
//!
//! Rows and depth may each be three nested loops with strides of their own ([`Span`], [`Walk`]): that is
//! what a convolution over some images is, without a copy of their patches.
//!
//! Measured against the `gemm` crate on the shapes of a dense layer in
//! `docs/decisions/0001-own-matrix-product.md`.

pub(crate) mod packed;
mod tile;
mod vector;

use crate::simd::Isa;
use crate::threads::{Grid, SharedMut, Threads};
use tile::Product;
pub(crate) use vector::{Kernel, Vector, dispatch};

/// A dimension that is walked as three nested loops: its length is their product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Turns of the outermost loop.
    pub outer: usize,
    /// Turns of the loop inside it.
    pub middle: usize,
    /// Turns of the innermost loop.
    pub inner: usize,
}

impl Span {
    /// A dimension of one loop.
    pub fn flat(inner: usize) -> Self {
        Self {
            outer: 1,
            middle: 1,
            inner,
        }
    }

    pub(crate) fn len(self) -> usize {
        self.outer * self.middle * self.inner
    }
}

/// How far apart the elements of such a dimension lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walk {
    /// From one turn of the outermost loop to the next.
    pub outer: usize,
    /// From one turn of the loop inside it to the next.
    pub middle: usize,
    /// From one turn of the innermost loop to the next.
    pub inner: usize,
}

impl Walk {
    /// A dimension of one loop.
    pub fn flat(inner: usize) -> Self {
        Self {
            outer: 0,
            middle: 0,
            inner,
        }
    }

    /// Where the turns of the three loops lead.
    #[inline(always)]
    fn place(self, outer: usize, middle: usize, inner: usize) -> usize {
        outer * self.outer + middle * self.middle + inner * self.inner
    }

    /// Distance from the first element to the last.
    fn reach(self, span: Span) -> usize {
        self.place(span.outer - 1, span.middle - 1, span.inner - 1)
    }
}

/// The left operand: any strides.
#[derive(Debug, Clone, Copy)]
pub struct Left<'a> {
    /// The elements.
    pub data: &'a [f32],
    /// How its rows lie.
    pub rows: Walk,
    /// How its columns lie.
    pub depth: Walk,
}

impl<'a> Left<'a> {
    /// A matrix whose rows of `width` numbers lie one after the other.
    pub fn rows(data: &'a [f32], width: usize) -> Self {
        Self {
            data,
            rows: Walk::flat(width),
            depth: Walk::flat(1),
        }
    }

    /// The same without its first rows. Its rows are one loop.
    fn below(self, row: usize) -> Self {
        Self {
            data: &self.data[row * self.rows.inner..],
            ..self
        }
    }

    /// The transpose of such a matrix.
    pub fn transposed(data: &'a [f32], width: usize) -> Self {
        Self {
            data,
            rows: Walk::flat(1),
            depth: Walk::flat(width),
        }
    }
}

/// What becomes of the values that C had before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accumulate {
    /// They are overwritten.
    Replace,
    /// The product is added to them: each chain begins with the old value.
    Add,
    /// The product is added to them as a whole: each chain begins at zero, and its end is added to the
    /// old value. For a depth of at most [`WHOLE_DEPTH`].
    AddWhole,
}

/// The largest depth of a product that is added as a whole: as much as stays in registers.
pub const WHOLE_DEPTH: usize = tile::PANEL / (3 * 16);

/// The shape of a product: rows of A and C, columns of B and C, and what is summed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Rows of A and C.
    pub rows: Span,
    /// Columns of B and C.
    pub columns: usize,
    /// Columns of A, rows of B.
    pub depth: Span,
}

/// C (`m` x `n`) = A (`m` x `k`) B (`k` x `n`), or C += A B, on this thread. B's rows are `b_stride` apart, C's rows
/// `c_stride`.
///
/// # Panics
/// When an operand is too short for its shape.
pub fn gemm(
    (m, n, k): (usize, usize, usize),
    a: Left<'_>,
    b: &[f32],
    b_stride: usize,
    c: &mut [f32],
    c_stride: usize,
    into: Accumulate,
) {
    let shape = Shape {
        rows: Span::flat(m),
        columns: n,
        depth: Span::flat(k),
    };
    nested(shape, a, (b, b_stride), c, Walk::flat(c_stride), into);
}

/// C (`m` x `n`) = A (`m` x `k`) B (`k` x `n`), or C += A B, on these threads: rows and columns are cut into tiles. The
/// depth may be nested loops. `b` and `c` come with the distances between their rows.
///
/// # Panics
/// When an operand is too short for its shape.
pub(crate) fn in_tiles(
    threads: &Threads,
    (rows, columns, depth): (usize, usize, Span),
    a: Left<'_>,
    b: (&[f32], usize),
    (c, c_stride): (&mut [f32], usize),
    into: Accumulate,
) {
    let work = rows * columns * depth.len();
    let grid = Grid::new(threads, (rows, ROW_UNIT), (columns, COLUMN_UNIT), work);
    let c = SharedMut::new(c);
    threads.each(0..grid.count(), |_, tile| {
        let (rows, columns) = grid.tile(tile);
        let shape = Shape {
            rows: Span::flat(rows.len()),
            columns: columns.len(),
            depth,
        };
        let a = a.below(rows.start);
        let b = (&b.0[columns.start..], b.1);
        let at = rows.start * c_stride + columns.start;
        // SAFETY: tiles do not overlap.
        unsafe { nested_at(shape, a, b, (&c, at), Walk::flat(c_stride), into) };
    });
}

/// Rows of a tile are a multiple of these: a few tiles of the registers.
const ROW_UNIT: usize = 24;

/// Columns of a tile are a multiple of these: three of the widest vectors.
const COLUMN_UNIT: usize = 48;

/// The product over nested loops, on this thread. `b` comes with the distance between its rows, which
/// follow each other in the order of the depth.
///
/// # Panics
/// When an operand is too short for its shape.
pub fn nested(
    shape: Shape,
    a: Left<'_>,
    b: (&[f32], usize),
    c: &mut [f32],
    c_rows: Walk,
    into: Accumulate,
) {
    let c = SharedMut::new(c);
    // SAFETY: `c` is borrowed mutably.
    unsafe { nested_at(shape, a, b, (&c, 0), c_rows, into) }
}

/// As [`nested`], with C beginning at a place of a slice that other threads may write to at the same time.
///
/// # Safety
/// Nobody else reads or writes the elements of C meanwhile.
///
/// # Panics
/// When an operand is too short for its shape.
pub(crate) unsafe fn nested_at(
    shape: Shape,
    a: Left<'_>,
    (b, b_stride): (&[f32], usize),
    (c, at): (&SharedMut<'_, f32>, usize),
    c_rows: Walk,
    into: Accumulate,
) {
    let Shape {
        rows,
        columns,
        depth,
    } = shape;
    if rows.len() == 0 || columns == 0 {
        return;
    }
    let end = at + c_rows.reach(rows) + columns;
    assert!(end <= c.len(), "C is too short");
    let b_rows = depth.len();
    if b_rows == 0 {
        if into == Accumulate::Replace {
            // SAFETY: by this function's contract.
            unsafe { clear(rows, columns, (c, at), c_rows) };
        }
        return;
    }
    assert!(
        a.rows.reach(rows) + a.depth.reach(depth) < a.data.len(),
        "A is too short"
    );
    assert!(
        (b_rows - 1) * b_stride + columns <= b.len(),
        "B is too short"
    );
    assert!(
        into != Accumulate::AddWhole || b_rows <= WHOLE_DEPTH,
        "a product of depth {b_rows} cannot be added as a whole"
    );
    let product = Product {
        rows,
        columns,
        depth,
        a: a.data.as_ptr(),
        a_rows: a.rows,
        a_depth: a.depth,
        b: b.as_ptr(),
        b_stride,
        c: c.pointer(at),
        c_rows,
        accumulate: into == Accumulate::Add,
        add_whole: into == Accumulate::AddWhole,
    };
    // SAFETY: the asserts above put the last element of each operand, and with it every other, inside
    // its slice; `c` is borrowed mutably, so it overlaps neither of the others, and nobody else uses these
    // elements of it; each kernel runs only at a level that the machine was detected to have.
    unsafe { run(Isa::current(), product) }
}

/// Zeroes all rows of C.
///
/// # Safety
/// As for [`nested_at`].
unsafe fn clear(rows: Span, columns: usize, (c, at): (&SharedMut<'_, f32>, usize), walk: Walk) {
    for outer in 0..rows.outer {
        for middle in 0..rows.middle {
            for inner in 0..rows.inner {
                let at = at + walk.place(outer, middle, inner);
                // SAFETY: by this function's contract, and rows do not overlap.
                unsafe { c.part(at..at + columns) }.fill(0.0);
            }
        }
    }
}

/// Computes a product at a level.
///
/// # Safety
/// All elements are accessible, C overlaps neither A nor B, and the machine has the level.
unsafe fn run(level: Isa, product: Product) {
    // SAFETY: by this function's contract.
    unsafe {
        match level {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => avx512(product),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => avx2(product),
            _ => portable(product),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
unsafe fn avx512(p: Product) {
    // SAFETY: by `run`'s contract.
    unsafe { tile::product::<vector::x86::Wide>(p) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2(p: Product) {
    // SAFETY: by `run`'s contract.
    unsafe { tile::product::<vector::x86::Half>(p) }
}

unsafe fn portable(p: Product) {
    // SAFETY: by `run`'s contract.
    unsafe { tile::product::<vector::Plain>(p) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition: one chain a number.
    fn reference(
        shape: Shape,
        a: Left<'_>,
        (b, b_stride): (&[f32], usize),
        c: &mut [f32],
        c_rows: Walk,
        into: Accumulate,
    ) {
        let place = |walk: Walk, span: Span, at: usize| {
            let turn = at / span.inner;
            walk.place(turn / span.middle, turn % span.middle, at % span.inner)
        };
        for i in 0..shape.rows.len() {
            for j in 0..shape.columns {
                let to = place(c_rows, shape.rows, i) + j;
                let start = if into == Accumulate::Add { c[to] } else { 0.0 };
                let chain = (0..shape.depth.len()).fold(start, |sum, k| {
                    let from = place(a.rows, shape.rows, i) + place(a.depth, shape.depth, k);
                    a.data[from].mul_add(b[k * b_stride + j], sum)
                });
                c[to] = if into == Accumulate::AddWhole {
                    c[to] + chain
                } else {
                    chain
                };
            }
        }
    }

    fn numbers(seed: u64, len: usize) -> Vec<f32> {
        let mut stream = lockstep_base::random::Stream::new(seed, 0);
        (0..len).map(|_| stream.unit_f32() - 0.5).collect()
    }

    /// Compares every level with the definition, to the bit.
    fn check(shape: Shape, a_walks: (Walk, Walk), extra: usize, c_rows: Walk, into: Accumulate) {
        let (rows, depth) = a_walks;
        let a = numbers(1, rows.reach(shape.rows) + depth.reach(shape.depth) + 1);
        let a = Left {
            data: &a,
            rows,
            depth,
        };
        let b_stride = shape.columns + extra;
        let b = numbers(2, shape.depth.len() * b_stride);
        let start = numbers(3, c_rows.reach(shape.rows) + b_stride);
        let mut expected = start.clone();
        reference(shape, a, (&b, b_stride), &mut expected, c_rows, into);
        for level in [Isa::Portable, Isa::Avx2, Isa::Avx512] {
            if level > Isa::detect() {
                continue;
            }
            let mut c = start.clone();
            let product = Product {
                rows: shape.rows,
                columns: shape.columns,
                depth: shape.depth,
                a: a.data.as_ptr(),
                a_rows: rows,
                a_depth: depth,
                b: b.as_ptr(),
                b_stride,
                c: c.as_mut_ptr(),
                c_rows,
                accumulate: into == Accumulate::Add,
                add_whole: into == Accumulate::AddWhole,
            };
            // SAFETY: the operands were made for this shape, and the level is there.
            unsafe { run(level, product) };
            let same = c.iter().zip(&expected);
            assert!(
                same.clone().all(|(x, y)| x.to_bits() == y.to_bits()),
                "{level:?} differs at {shape:?}"
            );
        }
    }

    fn check_flat(
        (m, n, k): (usize, usize, usize),
        transposed: bool,
        extra: usize,
        into: Accumulate,
    ) {
        let shape = Shape {
            rows: Span::flat(m),
            columns: n,
            depth: Span::flat(k),
        };
        let walks = match transposed {
            true => (Walk::flat(1), Walk::flat(m)),
            false => (Walk::flat(k), Walk::flat(1)),
        };
        check(shape, walks, extra, Walk::flat(n + extra), into);
    }

    #[test]
    fn every_level_gives_the_bits_of_the_definition() {
        for shape in [
            (1, 1, 1),
            (16, 512, 784),
            (3, 10, 512),
            (33, 47, 300),
            (64, 96, 16),
        ] {
            check_flat(shape, false, 0, Accumulate::Replace);
            check_flat(shape, true, 5, Accumulate::Add);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn odd_shapes_give_the_bits_of_the_definition(
            m in 1usize..70, n in 1usize..110, k in 1usize..280, t: bool, extra in 0usize..9, add: bool,
        ) {
            check_flat((m, n, k), t, extra, if add { Accumulate::Add } else { Accumulate::Replace });
            check_flat((m, n, k.min(WHOLE_DEPTH)), t, extra, Accumulate::AddWhole);
        }

        #[test]
        fn nested_loops_give_the_bits_of_the_definition(
            rows in (1usize..4, 1usize..5, 1usize..20), depth in (1usize..4, 1usize..5, 1usize..150),
            n in 1usize..70, a_rows in (1usize..99, 1usize..40, 1usize..5),
            a_depth in (1usize..300, 1usize..200, 1usize..3), gap in 0usize..20, add: bool,
        ) {
            let span = |(outer, middle, inner)| Span { outer, middle, inner };
            let walk = |(outer, middle, inner)| Walk { outer, middle, inner };
            let shape = Shape { rows: span(rows), columns: n, depth: span(depth) };
            let line = rows.2 * (n + 3) + gap;
            let c_rows = walk((rows.1 * line + gap, line, n + 3));
            let into = if add { Accumulate::Add } else { Accumulate::Replace };
            check(shape, (walk(a_rows), walk(a_depth)), 3, c_rows, into);
        }
    }

    #[test]
    fn cutting_a_product_for_threads_does_not_change_its_bits() {
        let (m, n, k) = (333, 170, 90);
        let (a, b) = (numbers(1, m * k), numbers(2, k * n));
        let mut whole = numbers(3, m * n);
        let mut cut = whole.clone();
        let (a, b, depth) = (Left::rows(&a, k), (&b[..], n), Span::flat(k));
        for threads in [1, 3] {
            let threads = Threads::with_threads(threads).unwrap();
            let c = if threads.count() == 1 {
                &mut whole
            } else {
                &mut cut
            };
            in_tiles(&threads, (m, n, depth), a, b, (c, n), Accumulate::Add);
        }
        assert_eq!(whole, cut);
    }

    #[test]
    fn a_product_over_nothing_is_zero_or_leaves_c_alone() {
        let mut c = [1.0; 4];
        gemm(
            (2, 2, 0),
            Left::rows(&[], 0),
            &[],
            2,
            &mut c,
            2,
            Accumulate::Add,
        );
        assert_eq!(c, [1.0; 4]);
        gemm(
            (2, 2, 0),
            Left::rows(&[], 0),
            &[],
            2,
            &mut c,
            2,
            Accumulate::Replace,
        );
        assert_eq!(c, [0.0; 4]);
    }

    #[test]
    #[should_panic(expected = "B is too short")]
    fn an_operand_that_is_too_short_is_refused() {
        let a = Left::rows(&[0.0; 4], 2);
        gemm(
            (2, 2, 2),
            a,
            &[0.0; 3],
            2,
            &mut [0.0; 4],
            2,
            Accumulate::Replace,
        );
    }
}
