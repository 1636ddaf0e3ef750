//! Products with a matrix that does not change: it is sliced once.
//!
//! So encoders compute, which only go forwards: the matrix has one scale, and every row its own, so that what becomes of it
//! does not depend on others.

use super::block::{COLUMNS, DEPTH, Left, ROWS, Session};
use super::cast::{bytes, bytes_mut, words_mut};
use super::engine::Engine;
use super::product::{Product, apart};
use super::right::{Turned, depths, left_room, pack_turned, right_room};
use super::scale::Scale;
use super::slices::slice;
use crate::buffer::Buffer;
use crate::gemm::packed::Finish;
use crate::layers::{carve, carved};
use crate::threads::{SharedMut, Threads, pieces, pieces_mut};

/// Rows that a thread computes at a time.
const AT_ONCE: usize = 16 * ROWS;

/// A matrix in slices, and the bias of its columns.
pub(crate) struct SlicedMatrix {
    depth: usize,
    bias: Vec<f32>,
    scale: Scale,
    right: Buffer,
}

impl SlicedMatrix {
    /// Slices a matrix that comes column by column, as PyTorch keeps weights.
    pub(crate) fn new(depth: usize, matrix: &[f32], bias: &[f32]) -> Self {
        let (columns, scale) = (bias.len(), Scale::of(matrix));
        assert_eq!(matrix.len(), depth * columns, "numbers of the matrix");
        let mut right = Buffer::large(right_room(depth, columns));
        let turned = Turned {
            data: matrix,
            places: &[0],
            rows: columns,
            columns: depth,
        };
        let pairs = words_mut(&mut right).chunks_mut(right_room(depth, COLUMNS));
        for (pair, to) in pairs.enumerate() {
            pack_turned(turned, pair * COLUMNS, scale.by(), to);
        }
        Self {
            depth,
            bias: bias.to_vec(),
            scale,
            right,
        }
    }

    /// Rows that are computed at a time, of so many.
    fn at_once(threads: &Threads, rows: usize) -> usize {
        let of_thread = rows.div_ceil(threads.count());
        of_thread.next_multiple_of(ROWS).clamp(ROWS, AT_ONCE)
    }

    /// Numbers of memory for so many rows: their slices, and their outputs.
    fn room_of_tile(&self, rows: usize) -> usize {
        carved(left_room(rows, self.depth)) + rows * self.bias.len()
    }

    /// Numbers of memory that a product of at most so many rows needs to work in.
    pub(crate) fn room(&self, threads: &Threads, rows: usize) -> usize {
        let at_once = Self::at_once(threads, rows);
        threads.rooms(self.room_of_tile(at_once), threads.count())
    }

    /// C = A B + bias, or as `finish` says, on these threads. Rows of A and C follow each other.
    pub(crate) fn product(
        &self,
        threads: &Threads,
        a: &[f32],
        c: &mut [f32],
        finish: Finish,
        room: &mut [f32],
    ) {
        let columns = self.bias.len();
        let at_once = Self::at_once(threads, c.len() / columns);
        let tiles = (
            pieces(a, at_once * self.depth),
            pieces_mut(c, at_once * columns),
        );
        threads.each_in(
            room,
            self.room_of_tile(at_once),
            tiles,
            |room, _, (a, c)| {
                self.rows(a, c, finish, room);
            },
        );
    }

    /// Some rows of it, on this thread.
    fn rows(&self, a: &[f32], c: &mut [f32], finish: Finish, room: &mut [f32]) {
        let (columns, rows) = (self.bias.len(), a.len() / self.depth);
        let (left, outputs) = carve(room, left_room(rows, self.depth));
        let (upper, lower) = left.split_at_mut(left.len() / 2);
        let stride = depths(self.depth) * DEPTH;
        let mut scales = [Scale::default(); AT_ONCE];
        let slices = bytes_mut(upper)
            .chunks_mut(stride)
            .zip(bytes_mut(lower).chunks_mut(stride));
        for ((a, scale), (upper, lower)) in a.chunks_exact(self.depth).zip(&mut scales).zip(slices)
        {
            *scale = Scale::of(a);
            slice(
                a,
                scale.by(),
                &mut upper[..self.depth],
                &mut lower[..self.depth],
            );
        }
        let product = Product {
            left: Left {
                upper: bytes(upper),
                lower: bytes(lower),
                stride,
            },
            offsets: None,
            row_scales: &scales[..rows],
            rows_of_scale: 1,
            rows,
            right: bytes(&self.right),
            right_scale: self.scale,
            columns,
            depth: self.depth,
        };
        let adds = matches!(finish, Finish::Add);
        let to = SharedMut::new(if adds {
            &mut outputs[..rows * columns]
        } else {
            &mut *c
        });
        let mut session = Session::new(Engine::current());
        let place = apart(columns, 0);
        // SAFETY: `to` is borrowed mutably, and has a place for every output.
        unsafe {
            product.part(
                &mut session,
                0..rows,
                0..columns,
                Some(&self.bias),
                &to,
                place,
            )
        };
        match finish {
            Finish::Replace => {}
            Finish::Clamp(least, most) => c.iter_mut().for_each(|c| *c = c.clamp(least, most)),
            Finish::Add => c.iter_mut().zip(outputs).for_each(|(c, x)| *c += *x),
            Finish::Map(map) => c.chunks_exact_mut(columns).for_each(map),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{exponent, output, slices};
    use super::*;
    use lockstep_base::random::Stream;

    #[test]
    fn a_row_has_the_bits_of_plain_integers_whatever_rows_are_beside_it() {
        let (rows, depth, columns) = (37, 150, 50);
        let mut stream = Stream::new(3, 0);
        let mut numbers = |count: usize| -> Vec<f32> {
            (0..count)
                .map(|_| (stream.unit_f32() - 0.5) * (4.0 * stream.unit_f32()).exp())
                .collect()
        };
        let (matrix, bias) = (numbers(depth * columns), numbers(columns));
        let (a, before) = (numbers(rows * depth), numbers(rows * columns));
        let sliced = SlicedMatrix::new(depth, &matrix, &bias);
        let of_matrix = exponent(&matrix).unwrap();
        let product = |row: usize, column: usize| {
            let a = &a[row * depth..(row + 1) * depth];
            let own = exponent(a).unwrap();
            let b = &matrix[column * depth..(column + 1) * depth];
            let a = a.iter().map(|&x| slices(x, own));
            let b = b.iter().map(|&x| slices(x, of_matrix));
            output(a, b, [own, of_matrix]) + bias[column]
        };
        for threads in [1, 3] {
            let threads = Threads::with_threads(threads).unwrap();
            let mut room = Buffer::zeros(sliced.room(&threads, rows));
            for (finish, expected) in [
                (Finish::Replace, &(|_, c| c) as &dyn Fn(f32, f32) -> f32),
                (Finish::Add, &|before, c| before + c),
                (Finish::Clamp(0.0, 6.0), &|_, c: f32| c.clamp(0.0, 6.0)),
                (
                    Finish::Map(|c| c.iter_mut().for_each(|c| *c *= 2.0)),
                    &|_, c| 2.0 * c,
                ),
            ] {
                let mut c = before.clone();
                sliced.product(&threads, &a, &mut c, finish, &mut room);
                for (i, (&before, &found)) in before.iter().zip(&c).enumerate() {
                    let expected = expected(before, product(i / columns, i % columns));
                    assert_eq!(
                        found.to_bits(),
                        expected.to_bits(),
                        "{finish:?}, number {i}"
                    );
                }
            }
        }
    }
}
