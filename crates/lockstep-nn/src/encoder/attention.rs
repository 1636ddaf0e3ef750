//! Attention of a picture's tokens to each other, head by head.

use super::norm::sum_of;
use crate::buffer::Buffer;
use crate::gemm::{Accumulate, Left, Shape, Span, Walk, gemm, nested_at};
use crate::layers::gelu::exp_of_negative;
use crate::layers::{carve, carved};
use crate::simd::for_each_isa;
use crate::threads::{SharedMut, Threads};

/// Sizes and scratch memory of attention.
pub(super) struct Attention {
    tokens: usize,
    heads: usize,
    /// Numbers of a token in one head.
    width: usize,
    /// For each thread one head's keys, transposed: `width` rows; and what each token of it thinks of each: `tokens`
    /// rows.
    rooms: Buffer,
}

impl Attention {
    /// For up to `rows` pictures of so many tokens of `heads` times `width` numbers.
    pub(super) fn new(
        threads: &Threads,
        rows: usize,
        tokens: usize,
        heads: usize,
        width: usize,
    ) -> Self {
        let mut attention = Self {
            tokens,
            heads,
            width,
            rooms: Buffer::default(),
        };
        attention.rooms = Buffer::zeros(threads.rooms(attention.room(), rows * heads));
        attention
    }

    /// Numbers that a thread works in.
    fn room(&self) -> usize {
        carved(self.tokens * self.width) + self.tokens * self.tokens
    }

    /// Attends. A token of `x` is its queries, keys and values one after the other; `y` takes the mixed
    /// values.
    pub(super) fn run(&mut self, threads: &Threads, x: &[f32], y: &mut [f32]) {
        let (tokens, heads, width) = (self.tokens, self.heads, self.width);
        let (hidden, room) = (heads * width, self.room());
        let pictures = y.len() / (tokens * hidden);
        let y = SharedMut::new(y);
        threads.each_in(
            &mut self.rooms,
            room,
            0..pictures * heads,
            |room, _, tile| {
                let (picture, at) = (tile / heads, tile % heads * width);
                let (turned, shares) = carve(room, tokens * width);
                let x = &x[picture * tokens * 3 * hidden..][..tokens * 3 * hidden];
                let (queries, keys, values) = (&x[at..], &x[hidden + at..], &x[2 * hidden + at..]);
                transpose(keys, (tokens, width), 3 * hidden, turned);
                let queries = Left {
                    data: queries,
                    rows: Walk::flat(3 * hidden),
                    depth: Walk::flat(1),
                };
                let into = Accumulate::Replace;
                let shape = (tokens, tokens, width);
                gemm(shape, queries, turned, tokens, shares, tokens, into);
                softmax(tokens, 1.0 / (width as f32).sqrt(), shares);
                let shape = Shape {
                    rows: Span::flat(tokens),
                    columns: width,
                    depth: Span::flat(tokens),
                };
                let (shares, values) = (Left::rows(shares, tokens), (values, 3 * hidden));
                let to = (&y, picture * tokens * hidden + at);
                // SAFETY: every head of every picture has columns of its own.
                unsafe { nested_at(shape, shares, values, to, Walk::flat(hidden), into) };
            },
        );
    }
}

for_each_isa! {
    /// Writes the transpose of a matrix whose rows are `stride` apart.
    fn transpose(from: &[f32], shape: (usize, usize), stride: usize, to: &mut [f32]) {
        const BLOCK: usize = 16;
        let (height, width) = shape;
        for top in (0..height).step_by(BLOCK) {
            for j in 0..width {
                for i in top..(top + BLOCK).min(height) {
                    to[j * height + i] = from[i * stride + j];
                }
            }
        }
    }

    /// Turns each row of scores into shares of 1: the exponential of a score times `scale`, over their
    /// sum.
    fn softmax(width: usize, scale: f32, x: &mut [f32]) {
        for x in x.chunks_exact_mut(width) {
            let highest = x.iter().fold(f32::NEG_INFINITY, |high, &x| if x > high { x } else { high });
            for x in x.iter_mut() {
                *x = exp_of_negative((highest - *x) * scale);
            }
            let factor = 1.0 / sum_of(x, |x| x);
            for x in x.iter_mut() {
                *x *= factor;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Attention by its definition, in double precision.
    fn reference(tokens: usize, heads: usize, width: usize, x: &[f32]) -> Vec<f64> {
        let hidden = heads * width;
        let number =
            |token: usize, part: usize, i: usize| f64::from(x[(token * 3 + part) * hidden + i]);
        let mut y = vec![0.0; tokens * hidden];
        for head in 0..heads {
            for query in 0..tokens {
                let scores: Vec<f64> = (0..tokens)
                    .map(|key| {
                        let at = head * width..(head + 1) * width;
                        at.map(|i| number(query, 0, i) * number(key, 1, i))
                            .sum::<f64>()
                            / (width as f64).sqrt()
                    })
                    .collect();
                let total: f64 = scores.iter().map(|score| score.exp()).sum();
                for i in head * width..(head + 1) * width {
                    y[query * hidden + i] = (0..tokens)
                        .map(|key| scores[key].exp() / total * number(key, 2, i))
                        .sum();
                }
            }
        }
        y
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn any_size_attends_as_defined(tokens in 1usize..60, heads in 1usize..4, width in 1usize..40) {
            let mut stream = lockstep_base::random::Stream::new(7, 0);
            let x: Vec<f32> = (0..tokens * 3 * heads * width).map(|_| 4.0 * stream.unit_f32() - 2.0).collect();
            let mut y = vec![0.0; tokens * heads * width];
            let threads = Threads::default();
            Attention::new(&threads, 1, tokens, heads, width).run(&threads, &x, &mut y);
            for (y, exact) in y.iter().zip(reference(tokens, heads, width, &x)) {
                prop_assert!((f64::from(*y) - exact).abs() < 1e-5, "{} instead of {}", y, exact);
            }
        }
    }
}
