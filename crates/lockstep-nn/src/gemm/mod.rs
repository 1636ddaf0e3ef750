//! Matrix products whose every output is one chain of fused multiply-adds in the order of `k`.
//!
//! That order is the whole of the numerics: it depends neither on the machine's vector width, nor on
//! the tiling, nor on how many rows are computed in one call, so the same inputs give the same bits on
//! every machine. Vectors run across the columns of C; A's elements are broadcast from wherever they
//! lie, so A may be transposed for nothing. B's and C's rows are contiguous.
//!
//! Measured against the `gemm` crate on the shapes of a dense layer in
//! `docs/decisions/0001-own-matrix-product.md`.

mod tile;
mod vector;

use crate::simd::Isa;
use crate::threads;
use tile::{Product, Registers16, Registers32};

/// The left operand: any strides.
#[derive(Debug, Clone, Copy)]
pub struct Left<'a> {
    /// The elements.
    pub data: &'a [f32],
    /// Distance from a row to the next.
    pub row: usize,
    /// Distance from a column to the next.
    pub column: usize,
}

impl<'a> Left<'a> {
    /// A matrix whose rows of `width` numbers lie one after the other.
    pub fn rows(data: &'a [f32], width: usize) -> Self {
        Self {
            data,
            row: width,
            column: 1,
        }
    }

    /// The transpose of such a matrix.
    pub fn transposed(data: &'a [f32], width: usize) -> Self {
        Self {
            data,
            row: 1,
            column: width,
        }
    }
}

/// What becomes of the values that C had before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Into {
    /// They are overwritten.
    Replace,
    /// The product is added to them: each chain begins with the old value.
    Add,
}

/// Rows below which a product is not cut for another thread.
const ROWS_PER_THREAD: usize = 16;

/// C (`m` x `n`) = A (`m` x `k`) B (`k` x `n`), or C += A B. B's rows are `b_stride` apart, C's rows
/// `c_stride`.
///
/// # Panics
/// When an operand is too short for its shape.
#[allow(clippy::too_many_arguments)]
pub fn gemm(
    (m, n, k): (usize, usize, usize),
    a: Left<'_>,
    b: &[f32],
    b_stride: usize,
    c: &mut [f32],
    c_stride: usize,
    into: Into,
) {
    if m == 0 || n == 0 {
        return;
    }
    if k == 0 {
        if into == Into::Replace {
            for row in c.chunks_mut(c_stride).take(m) {
                row[..n].fill(0.0);
            }
        }
        return;
    }
    if let Some(pool) = threads::pool_for(m * n * k) {
        let rows = m.div_ceil(pool.current_num_threads()).max(ROWS_PER_THREAD);
        return pool.install(|| shared((m, n, k), a, b, b_stride, c, c_stride, into, rows));
    }
    on_this_thread((m, n, k), a, b, b_stride, c, c_stride, into);
}

/// The product cut into halves until each has at most `rows` rows, each half where a thread is free.
#[allow(clippy::too_many_arguments)]
fn shared(
    (m, n, k): (usize, usize, usize),
    a: Left<'_>,
    b: &[f32],
    b_stride: usize,
    c: &mut [f32],
    c_stride: usize,
    into: Into,
    rows: usize,
) {
    if m <= rows {
        return on_this_thread((m, n, k), a, b, b_stride, c, c_stride, into);
    }
    let top = (m / 2).div_ceil(rows) * rows;
    let (c_top, c_bottom) = c.split_at_mut(top * c_stride);
    let below = Left {
        data: &a.data[top * a.row..],
        ..a
    };
    rayon::join(
        || shared((top, n, k), a, b, b_stride, c_top, c_stride, into, rows),
        || {
            shared(
                (m - top, n, k),
                below,
                b,
                b_stride,
                c_bottom,
                c_stride,
                into,
                rows,
            )
        },
    );
}

/// The product, its operands' lengths checked.
fn on_this_thread(
    (m, n, k): (usize, usize, usize),
    a: Left<'_>,
    b: &[f32],
    b_stride: usize,
    c: &mut [f32],
    c_stride: usize,
    into: Into,
) {
    assert!(
        (m - 1) * a.row + (k - 1) * a.column < a.data.len(),
        "A is too short"
    );
    assert!((k - 1) * b_stride + n <= b.len(), "B is too short");
    assert!((m - 1) * c_stride + n <= c.len(), "C is too short");
    let product = Product {
        m,
        n,
        k,
        a: a.data.as_ptr(),
        a_strides: (a.row, a.column),
        b: b.as_ptr(),
        b_stride,
        c: c.as_mut_ptr(),
        c_stride,
        accumulate: into == Into::Add,
    };
    // SAFETY: the asserts above put the last element of each operand, and with it every other, inside
    // its slice; `c` is borrowed mutably, so it overlaps neither of the others; each kernel runs only
    // at a level that the machine was detected to have.
    unsafe {
        match Isa::current() {
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
    // SAFETY: by `gemm`'s checks.
    unsafe { tile::product::<vector::x86::Wide, Registers32>(p) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2(p: Product) {
    // SAFETY: by `gemm`'s checks.
    unsafe { tile::product::<vector::x86::Half, Registers16>(p) }
}

unsafe fn portable(p: Product) {
    // SAFETY: by `gemm`'s checks.
    unsafe { tile::product::<vector::Plain, Registers16>(p) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition: one chain a number.
    fn reference(
        (m, n, k): (usize, usize, usize),
        a: Left<'_>,
        b: &[f32],
        b_stride: usize,
        c: &mut [f32],
        c_stride: usize,
        into: Into,
    ) {
        for i in 0..m {
            for j in 0..n {
                let start = if into == Into::Add {
                    c[i * c_stride + j]
                } else {
                    0.0
                };
                c[i * c_stride + j] = (0..k).fold(start, |sum, p| {
                    a.data[i * a.row + p * a.column].mul_add(b[p * b_stride + j], sum)
                });
            }
        }
    }

    fn numbers(seed: u64, len: usize) -> Vec<f32> {
        let mut stream = lockstep_random::Stream::new(seed, 0);
        (0..len).map(|_| stream.unit_f32() - 0.5).collect()
    }

    fn check(m: usize, n: usize, k: usize, transposed: bool, extra: usize, into: Into) {
        let a = numbers(1, m * k);
        let a = if transposed {
            Left::transposed(&a, m)
        } else {
            Left::rows(&a, k)
        };
        let b = numbers(2, k * (n + extra));
        let mut expected = numbers(3, m * (n + extra));
        let shape = (m, n, k);
        let mut results = vec![expected.clone(); 3];
        let mut levels = vec![Isa::Portable];
        levels.extend(
            [Isa::Avx2, Isa::Avx512]
                .into_iter()
                .filter(|&l| l <= Isa::detect()),
        );
        reference(shape, a, &b, n + extra, &mut expected, n + extra, into);
        for (level, c) in levels.into_iter().zip(&mut results) {
            let p = Product {
                m,
                n,
                k,
                a: a.data.as_ptr(),
                a_strides: (a.row, a.column),
                b: b.as_ptr(),
                b_stride: n + extra,
                c: c.as_mut_ptr(),
                c_stride: n + extra,
                accumulate: into == Into::Add,
            };
            // SAFETY: the operands were made for this shape, and the level is there.
            unsafe {
                match level {
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => avx512(p),
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => avx2(p),
                    _ => portable(p),
                }
            }
            let same = c
                .iter()
                .zip(&expected)
                .all(|(x, y)| x.to_bits() == y.to_bits());
            assert!(same, "{level:?} differs at {m}x{n}x{k}");
        }
    }

    #[test]
    fn every_level_gives_the_bits_of_the_definition() {
        for (m, n, k) in [
            (1, 1, 1),
            (16, 512, 784),
            (3, 10, 512),
            (33, 47, 300),
            (64, 96, 16),
        ] {
            check(m, n, k, false, 0, Into::Replace);
            check(m, n, k, true, 5, Into::Add);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn odd_shapes_give_the_bits_of_the_definition(
            m in 1usize..70, n in 1usize..110, k in 1usize..280, t: bool, extra in 0usize..9, add: bool,
        ) {
            check(m, n, k, t, extra, if add { Into::Add } else { Into::Replace });
        }
    }

    #[test]
    fn cutting_a_product_for_threads_does_not_change_its_bits() {
        let (m, n, k) = (133, 70, 90);
        let (a, b) = (numbers(1, m * k), numbers(2, k * n));
        let mut whole = numbers(3, m * n);
        let mut cut = whole.clone();
        let a = Left::rows(&a, k);
        on_this_thread((m, n, k), a, &b, n, &mut whole, n, Into::Add);
        shared((m, n, k), a, &b, n, &mut cut, n, Into::Add, 16);
        assert_eq!(whole, cut);
    }

    #[test]
    fn a_product_over_nothing_is_zero_or_leaves_c_alone() {
        let mut c = [1.0; 4];
        gemm((2, 2, 0), Left::rows(&[], 0), &[], 2, &mut c, 2, Into::Add);
        assert_eq!(c, [1.0; 4]);
        gemm(
            (2, 2, 0),
            Left::rows(&[], 0),
            &[],
            2,
            &mut c,
            2,
            Into::Replace,
        );
        assert_eq!(c, [0.0; 4]);
    }

    #[test]
    #[should_panic(expected = "B is too short")]
    fn an_operand_that_is_too_short_is_refused() {
        gemm(
            (2, 2, 2),
            Left::rows(&[0.0; 4], 2),
            &[0.0; 3],
            2,
            &mut [0.0; 4],
            2,
            Into::Replace,
        );
    }
}
