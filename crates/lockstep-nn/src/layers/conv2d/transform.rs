//! The transforms of Winograd's convolution of 6 x 6 pixels with 3 x 3 weights: each is a small matrix,
//! applied to the columns and then to the rows of a square, for a vector of channels at a time.
//!
//! They belong to the points 0, 1, -1, 2, -2 and infinity (Lavin and Gray, 2015). Forward, the output
//! is `A' ((G w G') * (B' x B)) A`; what is below is `B'`, `G`, `A'`, and for the weight gradient
//! `A` and `G'`.

use crate::gemm::Vector;
use crate::threads::SharedMut;

/// One of the matrices.
///
/// A type and not a function, and below plain loops and not array methods: what calls a closure is not
/// always inlined, and vectors outside of a kernel are slow.
pub(super) trait TransformMatrix<const N: usize, const M: usize> {
    /// The matrix times a vector.
    fn apply<V: Vector>(x: [V; N]) -> [V; M];
}

/// Applies a transform to the columns of a square, then to the rows.
#[inline(always)]
pub(super) fn square<V: Vector, T: TransformMatrix<N, M>, const N: usize, const M: usize>(
    from: [[V; N]; N],
) -> [[V; M]; M] {
    let mut half = [[V::zero(); N]; M];
    for column in 0..N {
        let mut x = [V::zero(); N];
        for row in 0..N {
            x[row] = from[row][column];
        }
        let x = T::apply(x);
        for row in 0..M {
            half[row][column] = x[row];
        }
    }
    let mut to = [[V::zero(); M]; M];
    for row in 0..M {
        to[row] = T::apply(half[row]);
    }
    to
}

/// Reads the places of a tile from their planes.
#[inline(always)]
pub(super) fn gather<V: Vector, const N: usize>(from: &[f32], plane: usize) -> [[V; N]; N] {
    let mut tile = [[V::zero(); N]; N];
    for i in 0..N {
        for j in 0..N {
            tile[i][j] = V::read(&from[(N * i + j) * plane..]);
        }
    }
    tile
}

/// Writes the places of a tile to their planes, from number `at` of each on.
///
/// # Safety
/// Nobody else uses these numbers of the planes meanwhile.
#[inline(always)]
pub(super) unsafe fn spread<V: Vector, const N: usize>(
    tile: [[V; N]; N],
    to: &SharedMut<'_, f32>,
    at: usize,
    plane: usize,
) {
    for (i, row) in tile.into_iter().enumerate() {
        for (j, x) in row.into_iter().enumerate() {
            let at = at + (N * i + j) * plane;
            // SAFETY: by this function's contract.
            x.write(unsafe { to.part(at..at + V::LANES) });
        }
    }
}

/// `B'`: pixels under a tile.
pub(super) struct OfPixels;

impl TransformMatrix<6, 6> for OfPixels {
    #[inline(always)]
    fn apply<V: Vector>(x: [V; 6]) -> [V; 6] {
        let even = x[4].plus(x[2], -4.0);
        let odd = x[3].plus(x[1], -4.0);
        let near = x[4].sub(x[2]);
        let far = x[3].sub(x[1]);
        [
            x[4].plus(x[2], -5.0).plus(x[0], 4.0),
            even.add(odd),
            even.sub(odd),
            near.plus(far, 2.0),
            near.plus(far, -2.0),
            x[5].plus(x[3], -5.0).plus(x[1], 4.0),
        ]
    }
}

/// `A'`: what the products of a tile come to.
pub(super) struct OfOutputs;

impl TransformMatrix<6, 4> for OfOutputs {
    #[inline(always)]
    fn apply<V: Vector>(m: [V; 6]) -> [V; 4] {
        let (even, odd) = (m[1].add(m[2]), m[1].sub(m[2]));
        let (far, further) = (m[3].add(m[4]), m[3].sub(m[4]));
        [
            m[0].add(even).add(far),
            odd.plus(further, 2.0),
            even.plus(far, 4.0),
            odd.plus(further, 8.0).add(m[5]),
        ]
    }
}

/// `A`: the gradient by what the products of a tile came to.
pub(super) struct OfOutputGradients;

impl TransformMatrix<4, 6> for OfOutputGradients {
    #[inline(always)]
    fn apply<V: Vector>(y: [V; 4]) -> [V; 6] {
        let (even, odd) = (y[0].add(y[2]), y[1].add(y[3]));
        let far = y[0].plus(y[2], 4.0);
        let further = y[1].times(2.0).plus(y[3], 8.0);
        [
            y[0],
            even.add(odd),
            even.sub(odd),
            far.add(further),
            far.sub(further),
            y[3],
        ]
    }
}

/// `G`: weights.
pub(super) struct OfWeights;

impl TransformMatrix<3, 6> for OfWeights {
    #[inline(always)]
    fn apply<V: Vector>(w: [V; 3]) -> [V; 6] {
        let even = w[0].add(w[2]).times(-1.0 / 6.0);
        let far = w[0].times(1.0 / 24.0).plus(w[2], 1.0 / 6.0);
        [
            w[0].times(0.25),
            even.plus(w[1], -1.0 / 6.0),
            even.plus(w[1], 1.0 / 6.0),
            far.plus(w[1], 1.0 / 12.0),
            far.plus(w[1], -1.0 / 12.0),
            w[2],
        ]
    }
}

/// `G'`: what the products of a gradient come to.
pub(super) struct OfWeightGradients;

impl TransformMatrix<6, 3> for OfWeightGradients {
    #[inline(always)]
    fn apply<V: Vector>(u: [V; 6]) -> [V; 3] {
        let (near, middle) = (u[1].add(u[2]).times(-1.0 / 6.0), u[2].sub(u[1]));
        let (far, further) = (u[3].add(u[4]), u[3].sub(u[4]));
        [
            near.plus(u[0], 0.25).plus(far, 1.0 / 24.0),
            middle.times(1.0 / 6.0).plus(further, 1.0 / 12.0),
            near.plus(far, 1.0 / 6.0).add(u[5]),
        ]
    }
}
