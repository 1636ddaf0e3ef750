//! All engines against the definition in plain integers, number by number.

mod layers;

use super::block::{COLUMNS, DEEPEST, DEPTH, Left, ROWS, Session};
use super::cast::{bytes, bytes_mut, words_mut};
use super::engine::Engine;
use super::product::{Product, apart};
use super::right::{Matrix, Panels, depths, left_of_transpose, pack, pack_transpose, right_room};
use super::scale::{LARGEST, Scale};
use super::slices::slice;
use crate::buffer::Buffer;
use crate::factors::PANEL;
use crate::threads::SharedMut;
use lockstep_base::random::Stream;
use proptest::prelude::*;

/// The definition of the exponent: the least that all numbers fit under. None if one is no number.
pub(super) fn exponent(numbers: &[f32]) -> Option<i32> {
    let fits = |e: i32| {
        numbers
            .iter()
            .all(|&x| nearest(x, e).unsigned_abs() <= LARGEST as u32)
    };
    let are_finite = numbers.iter().all(|x| x.is_finite());
    are_finite.then(|| (-52..=129).find(|&e| fits(e)).unwrap())
}

/// The definition of a number's multiple.
fn nearest(x: f32, e: i32) -> i32 {
    (f64::from(x) * 2f64.powi(15 - e)).round_ties_even() as i32
}

/// The definition of both slices.
pub(super) fn slices(x: f32, e: i32) -> [i64; 2] {
    let q = nearest(x, e);
    let upper = (q + 128) >> 8;
    assert!(i8::try_from(upper).is_ok() && i8::try_from(q - 256 * upper).is_ok());
    [upper.into(), (q - 256 * upper).into()]
}

/// The definition of an output.
pub(super) fn output(
    a: impl Iterator<Item = [i64; 2]>,
    b: impl Iterator<Item = [i64; 2]>,
    e: [i32; 2],
) -> f32 {
    let v: i64 = a
        .zip(b)
        .map(|([ha, la], [hb, lb])| 256 * ha * hb + ha * lb + la * hb)
        .sum();
    v as f32 * 2f32.powi(e[0] - 11) * 2f32.powi(e[1] - 11)
}

/// A product: `a` is rows by depth, `b` depth by columns.
struct Case {
    name: String,
    shape: [usize; 3],
    a: Vec<f32>,
    b: Vec<f32>,
    /// Whether every row of `a` has a scale of its own.
    by_rows: bool,
}

impl Case {
    fn new(
        name: &str,
        shape: [usize; 3],
        by_rows: bool,
        make: &mut dyn FnMut(&mut Stream, usize, usize, bool) -> f32,
    ) -> Self {
        let ([m, n, k], mut stream) = (shape, Stream::new(7, 0));
        let a = (0..m * k)
            .map(|i| make(&mut stream, i / k, i % k, true))
            .collect();
        let mut b = vec![0.0; k * n];
        for column in 0..n {
            for depth in 0..k {
                b[depth * n + column] = make(&mut stream, column, depth, false);
            }
        }
        let name = format!(
            "{name}{} {m} x {n} x {k}",
            if by_rows { " by rows" } else { "" }
        );
        Self {
            name,
            shape,
            a,
            b,
            by_rows,
        }
    }

    fn expected(&self) -> Vec<f32> {
        let [m, n, k] = self.shape;
        let of_b = exponent(&self.b);
        let of_all = exponent(&self.a);
        let mut outputs = vec![f32::NAN; m * n];
        for (row, outputs) in self.a.chunks(k).zip(outputs.chunks_mut(n)) {
            let of_a = if self.by_rows { exponent(row) } else { of_all };
            let (Some(ea), Some(eb)) = (of_a, of_b) else {
                continue;
            };
            for (column, to) in outputs.iter_mut().enumerate() {
                let a = row.iter().map(|&x| slices(x, ea));
                let b = (0..k).map(|depth| slices(self.b[depth * n + column], eb));
                *to = output(a, b, [ea, eb]);
            }
        }
        outputs
    }

    /// Both operands, made in two ways that must agree, multiplied by every engine of this machine.
    fn check(&self) {
        let [m, n, k] = self.shape;
        let expected = self.expected();
        let scales: Vec<Scale> = match self.by_rows {
            true => self.a.chunks(k).map(Scale::of).collect(),
            false => vec![Scale::of(&self.a)],
        };
        let scale = Scale::of(&self.b);
        let (length, stride) = (
            m.next_multiple_of(ROWS) * depths(k) * DEPTH,
            depths(k) * DEPTH,
        );
        let mut upper = Buffer::from(&vec![f32::NAN; length / 4][..]);
        let mut lower = upper.clone();
        for (row, x) in self.a.chunks(k).enumerate() {
            let by = scales[if self.by_rows { row } else { 0 }].by();
            let place = row * stride..row * stride + k;
            let upper = &mut bytes_mut(&mut upper)[place.clone()];
            slice(x, by, upper, &mut bytes_mut(&mut lower)[place]);
        }
        let mut right = Buffer::zeros(right_room(k, n));
        let pair = right_room(k, COLUMNS);
        for (number, to) in words_mut(&mut right).chunks_mut(pair).enumerate() {
            let matrix = Matrix::new(&self.b, n).columns(number * COLUMNS, COLUMNS);
            pack(matrix, scale.by(), to);
        }
        let mut transposed = Buffer::zeros(right_room(k, n));
        let panels = self.transposed_panels();
        for (number, to) in words_mut(&mut transposed).chunks_mut(pair).enumerate() {
            let matrix = Panels {
                data: &panels,
                rows: n,
                columns: k,
            };
            pack_transpose(matrix, number * COLUMNS, scale.by(), to);
        }
        assert!(
            bytes(&right) == bytes(&transposed),
            "{}: right operands",
            self.name
        );
        if !self.by_rows {
            self.check_left_of_transpose(&upper, &lower, scales[0]);
        }
        let product = Product {
            left: Left {
                upper: bytes(&upper),
                lower: bytes(&lower),
                stride,
            },
            offsets: None,
            row_scales: &scales,
            rows_of_scale: if self.by_rows { 1 } else { m },
            rows: m,
            right: bytes(&right),
            right_scale: scale,
            columns: n,
            depth: k,
        };
        for engine in Engine::ALL
            .into_iter()
            .filter(|&engine| engine <= Engine::detected())
        {
            let mut found = vec![0.0; m * n];
            let to = SharedMut::new(&mut found);
            // SAFETY: `found` is borrowed mutably.
            unsafe {
                product.part(
                    &mut Session::new(engine),
                    0..m,
                    0..n,
                    None,
                    &to,
                    apart(n, 0),
                )
            };
            for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let are_equal = found.to_bits() == expected.to_bits();
                assert!(
                    are_equal || found.is_nan() && expected.is_nan(),
                    "{} by {engine:?}, row {}, column {}: {found:e}, not {expected:e}",
                    self.name,
                    i / n,
                    i % n
                );
            }
        }
    }

    /// The transpose of `b` in panels.
    fn transposed_panels(&self) -> Vec<f32> {
        let [_, n, k] = self.shape;
        let mut panels = Vec::new();
        for first in (0..k).step_by(PANEL) {
            for column in 0..n {
                let rows = first..(first + PANEL).min(k);
                panels.extend(rows.map(|row| self.b[row * n + column]));
            }
        }
        panels
    }

    /// The left operand made from the transpose of `a` has the same slices.
    fn check_left_of_transpose(&self, upper: &[f32], lower: &[f32], scale: Scale) {
        let [m, _, k] = self.shape;
        let stride = depths(k) * DEPTH;
        let turned: Vec<f32> = (0..m * k).map(|i| self.a[i % m * k + i / m]).collect();
        let (mut one, mut other) = (Buffer::zeros(upper.len()), Buffer::zeros(upper.len()));
        let tile = ROWS * stride / 4;
        let tiles = words_mut(&mut one)
            .chunks_mut(tile)
            .zip(words_mut(&mut other).chunks_mut(tile));
        for (number, (upper, lower)) in tiles.enumerate() {
            left_of_transpose(
                Matrix::new(&turned, m),
                number * ROWS,
                scale.by(),
                upper,
                lower,
            );
        }
        for row in 0..m {
            for (found, expected) in [(&one, upper), (&other, lower)] {
                let place = row * stride..row * stride + k;
                let is_same = bytes(found)[place.clone()] == bytes(expected)[place];
                assert!(is_same, "{}: row {row} of the left operand", self.name);
            }
        }
    }
}

/// Numbers that are nearly normal.
fn normal(stream: &mut Stream) -> f32 {
    (0..6).map(|_| stream.unit_f32() * 2.0 - 1.0).sum::<f32>() * 0.7
}

/// Numbers at the limits of rounding, and of what slices hold, where the largest is just below 2.
const LIMITS: [f32; 10] = [
    32639.4, 32639.6, -32639.4, 32512.0, 128.0, -128.0, 127.0, 1.5, 2.5, 0.5,
];

#[test]
fn every_engine_has_the_outputs_of_plain_integers_for_all_kinds_of_matrices() {
    let check =
        |name, shape, by_rows, make: &mut dyn FnMut(&mut Stream, usize, usize, bool) -> f32| {
            Case::new(name, shape, by_rows, make).check();
        };
    let small = [18, 33, 130];
    for by_rows in [false, true] {
        check("normal", [32, 48, 320], by_rows, &mut |r, _, _, _| {
            normal(r)
        });
        check("odd", [21, 37, 77], by_rows, &mut |r, _, _, _| normal(r));
        check("ranges", small, by_rows, &mut |r, _, _, is_left| {
            normal(r) * (normal(r) * 8.0).exp() * if is_left { 1.0 } else { 1e-6 }
        });
        check("infinite", small, by_rows, &mut |r, row, k, is_left| {
            if is_left && row == 5 && k == 17 {
                f32::NEG_INFINITY
            } else {
                normal(r)
            }
        });
        check("nan", small, by_rows, &mut |r, row, k, is_left| {
            if !is_left && row == 9 && k == 100 {
                f32::NAN
            } else {
                normal(r)
            }
        });
        check("zeros", small, by_rows, &mut |r, row, _, is_left| {
            if is_left && (row < 9 || !by_rows) {
                -0.0
            } else {
                normal(r)
            }
        });
        check("subnormal", small, by_rows, &mut |r, row, _, is_left| {
            if is_left && (row < 9 || !by_rows) {
                1e-40 * r.unit_f32()
            } else {
                normal(r) * 1e-3
            }
        });
        check("tiny", small, by_rows, &mut |r, row, _, _| {
            normal(r) * 10f32.powi(-10 - (row % 25) as i32)
        });
        check("huge", small, by_rows, &mut |r, row, _, _| {
            normal(r) * 10f32.powi(5 + (row % 32) as i32)
        });
        check("limits", small, by_rows, &mut |r, _, _, _| {
            LIMITS[(r.unit_f32() * 10.0) as usize % 10] / 16384.0
        });
    }
    let deep = [3, 17, 8192];
    check("all at the most", deep, false, &mut |_, _, _, _| 32639.0);
    check(
        "the most against the least",
        deep,
        false,
        &mut |_, _, _, is_left| if is_left { 32639.0 } else { -32639.0 },
    );
    check(
        "lower slices at the most",
        deep,
        false,
        &mut |_, r, k, _| {
            if k == 0 && r == 0 {
                32639.0
            } else {
                32639.0 - 255.0
            }
        },
    );
}

#[test]
fn sums_are_exact_at_any_depth() {
    for depth in [512, 513, DEEPEST, DEEPEST + 1, 2 * DEEPEST + 70] {
        for sign in [1.0, -1.0] {
            let mut make =
                |_: &mut Stream, _, _, is_left| if is_left { 32639.0 } else { sign * 32639.0 };
            Case::new("deep", [1, 1, depth], false, &mut make).check();
        }
        Case::new("deep", [1, 1, depth], false, &mut |r, _, _, _| normal(r)).check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_shape_has_the_outputs_of_plain_integers(
        m in 1usize..40, n in 1usize..70, k in 1usize..200, by_rows: bool, spread in -30i32..30,
    ) {
        let mut make = |r: &mut Stream, row: usize, _: usize, is_left: bool| {
            normal(r) * 2f32.powi(if is_left { row as i32 % 5 } else { spread })
        };
        Case::new("any", [m, n, k], by_rows, &mut make).check();
    }
}
