//! Checks of a layer's backward pass: against finite differences of a plain `f64` definition.

use super::{Layer, Pass, Pointwise, Step};
use crate::layout::Layout;
use crate::replica::Collect;
use crate::threads::Threads;

/// A layer's definition in `f64`.
pub(crate) enum Reference<'a> {
    /// A function of one number.
    Map(&'a dyn Fn(f64) -> f64),
}

const DELTA: f64 = 1e-5;

/// A layer's output as a function of its state and its input.
pub(crate) type Definition<'a> = dyn Fn(&[f64], &[f64]) -> Vec<f64> + 'a;

/// Numbers in -1..1 away from 0, where a kink would spoil a difference.
fn numbers(seed: u64, len: usize) -> Vec<f32> {
    let mut stream = lockstep_base::random::Stream::new(seed, 1);
    (0..len)
        .map(|_| {
            let x = stream.unit_f32() * 2.0 - 1.0;
            if x.abs() < 0.01 { 0.1 } else { x }
        })
        .collect()
}

fn widen(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&x| f64::from(x)).collect()
}

fn assert_close(what: &str, at: usize, ours: f32, theirs: f64) {
    let error = (f64::from(ours) - theirs).abs();
    assert!(
        error < 1e-4 * theirs.abs().max(1.0),
        "{what}[{at}]: {ours} against {theirs}"
    );
}

/// The most places of a vector that are moved.
const PLACES: usize = 200;

/// The derivative of `loss` by `at`'s numbers, at places all over it.
fn differences(at: &[f64], loss: &dyn Fn(&[f64]) -> f64) -> Vec<(usize, f64)> {
    // An odd stride meets all channels in turn.
    let stride = at.len().div_ceil(PLACES) | 1;
    let slope = |i| {
        let mut moved = at.to_vec();
        moved[i] = at[i] + DELTA;
        let up = loss(&moved);
        moved[i] = at[i] - DELTA;
        (i, (up - loss(&moved)) / (2.0 * DELTA))
    };
    (0..at.len()).step_by(stride).map(slope).collect()
}

/// Calls `test` with a pass of training over some samples, which are one lane of a batch of so many.
pub(crate) fn one_lane(batch: usize, samples: &[u32], test: impl FnOnce(Pass<'_>)) {
    let (threads, rows) = (Threads::with_threads(2).expect("threads"), 0..samples.len());
    test(Pass {
        threads: &threads,
        step: Some(Step {
            seed: 0,
            number: 0,
            samples,
            batch,
        }),
        lanes: std::slice::from_ref(&rows),
    });
}

/// Forward against the definition, then input and parameter gradients against its differences, for the
/// loss `sum(weights * y)`.
pub(crate) fn check_layer(
    layer: &mut dyn Layer,
    layout: &Layout,
    rows: usize,
    inputs: usize,
    outputs: usize,
    definition: &Definition<'_>,
) {
    let (x, state) = (numbers(1, rows * inputs), numbers(2, layout.len()));
    let weights = numbers(3, rows * outputs);
    let samples: Vec<u32> = (0..rows as u32).collect();
    let mut y = vec![f32::NAN; rows * outputs];
    let mut dx = vec![f32::NAN; x.len()];
    let mut collect = Collect::new(&state, layout);
    one_lane(rows, &samples, |pass| {
        let mut scratch = vec![f32::NAN; layer.scratch(pass.threads, rows)];
        layer.forward(pass, &state, &x, &mut y, &mut scratch);
        scratch.fill(f32::NAN);
        let (mut dy, dx) = (weights.clone(), Some(&mut dx[..]));
        layer.backward(pass, &mut collect, &x, &mut dy, dx, &mut scratch);
    });
    let (wide_state, wide_x) = (widen(&state), widen(&x));
    for (i, theirs) in definition(&wide_state, &wide_x).into_iter().enumerate() {
        assert_close("y", i, y[i], theirs);
    }
    let weighted = |y: Vec<f64>| {
        y.iter()
            .zip(&weights)
            .map(|(y, &w)| y * f64::from(w))
            .sum::<f64>()
    };
    let by_x = differences(&wide_x, &|x| weighted(definition(&wide_state, x)));
    for (i, theirs) in by_x {
        assert_close("dx", i, dx[i], theirs);
    }
    let by_state = differences(&wide_state, &|state| weighted(definition(state, &wide_x)));
    for (i, theirs) in by_state {
        assert_close("gradient", i, collect.gradient[i], theirs);
    }
}

/// The same for a layer that works in place.
pub(crate) fn check_pointwise(
    layer: &mut dyn Pointwise,
    reference: &Reference<'_>,
    rows: usize,
    features: usize,
) {
    let Reference::Map(map) = reference;
    let x = numbers(4, rows * features);
    let samples: Vec<u32> = (0..rows as u32).collect();
    let mut y = x.clone();
    let weights = numbers(5, x.len());
    let mut dy = weights.clone();
    one_lane(rows, &samples, |pass| {
        layer.forward(pass, &mut y);
        layer.backward(pass, &y, &mut dy);
    });
    for (i, &x) in x.iter().enumerate() {
        let x = f64::from(x);
        assert_close("y", i, y[i], map(x));
        let slope = (map(x + DELTA) - map(x - DELTA)) / (2.0 * DELTA);
        assert_close("dx", i, dy[i], slope * f64::from(weights[i]));
    }
}
