//! Batch normalisation of vectors: every feature is brought to mean 0 and variance 1 over the lane's
//! rows, then scaled and shifted.
//!
//! A lane normalises with its own statistics, as a worker of PyTorch's DDP does. What it observed is
//! handed out as the "gradient" of the running statistics, weighted by its share of the batch: summed
//! over the lanes that is the batch's observation, whatever the number of workers.

use super::{Layer, Pass, Step};
use crate::factors::sum_rows;
use crate::init::Initial;
use crate::layout::{Layout, Order, Role};
use crate::replica::Replica;
use crate::simd::for_each_isa;
use std::ops::Range;

/// Added to the variance, as in PyTorch.
const EPSILON: f32 = 1e-5;

/// How much of a running statistic one batch replaces, as in PyTorch.
pub const MOMENTUM: f32 = 0.1;

/// Batch normalisation over `features` columns.
pub(crate) struct BatchNorm {
    name: String,
    features: usize,
    scale: Range<usize>,
    shift: Range<usize>,
    chunk: Range<usize>,
    running_mean: Range<usize>,
    running_variance: Range<usize>,
    statistics_chunk: Range<usize>,
    mean: Vec<f32>,
    variance: Vec<f32>,
    inverse_deviation: Vec<f32>,
    rows: usize,
}

impl BatchNorm {
    /// Appends the layer's parameters to the layout.
    pub(crate) fn new(name: &str, features: usize, layout: &mut Layout) -> Self {
        let shape = vec![features];
        let scale = layout.push(
            format!("{name}.weight"),
            shape.clone(),
            Order::AsIs,
            Role::Parameter,
        );
        let shift = layout.push(format!("{name}.bias"), shape, Order::AsIs, Role::Parameter);
        Self {
            name: name.to_owned(),
            features,
            scale,
            shift,
            chunk: layout.cut([2 * features]),
            running_mean: 0..0,
            running_variance: 0..0,
            statistics_chunk: 0..0,
            mean: vec![0.0; features],
            variance: vec![0.0; features],
            inverse_deviation: vec![0.0; features],
            rows: 0,
        }
    }
}

impl Layer for BatchNorm {
    fn scratch(&self, _rows: usize) -> usize {
        2 * self.features
    }

    fn forward(&mut self, pass: Pass<'_>, state: &[f32], x: &[f32], y: &mut [f32], _: &mut [f32]) {
        self.rows = x.len() / self.features;
        match pass {
            Pass::Train(_) => observe(x, &mut self.mean, &mut self.variance),
            Pass::Evaluate => {
                self.mean.copy_from_slice(&state[self.running_mean.clone()]);
                self.variance
                    .copy_from_slice(&state[self.running_variance.clone()]);
            }
        }
        for (inverse, &variance) in self.inverse_deviation.iter_mut().zip(&self.variance) {
            *inverse = 1.0 / (variance + EPSILON).sqrt();
        }
        let (scale, shift) = (&state[self.scale.clone()], &state[self.shift.clone()]);
        normalise(x, &self.mean, &self.inverse_deviation, scale, shift, y);
    }

    fn place_statistics(&mut self, layout: &mut Layout, initial: &mut Vec<Initial>) {
        let shape = vec![self.features];
        let mean = format!("{}.running_mean", self.name);
        let variance = format!("{}.running_var", self.name);
        self.running_mean = layout.push(mean, shape.clone(), Order::AsIs, Role::Statistic);
        self.running_variance = layout.push(variance, shape, Order::AsIs, Role::Statistic);
        self.statistics_chunk = layout.cut([2 * self.features]);
        initial.extend([Initial::Constant(0.0), Initial::Constant(1.0)]);
    }

    fn statistics(&mut self, step: Step<'_>, replica: &mut dyn Replica) {
        let rows = self.rows as f32;
        let share = rows / step.batch as f32;
        let unbiased = rows / (rows - 1.0) * share;
        replica.gradient(self.statistics_chunk.start, &mut |observed| {
            let (mean, variance) = observed.split_at_mut(self.features);
            for (out, &mean) in mean.iter_mut().zip(&self.mean) {
                *out = mean * share;
            }
            for (out, &variance) in variance.iter_mut().zip(&self.variance) {
                *out = variance * unbiased;
            }
        });
    }

    fn backward(
        &mut self,
        replica: &mut dyn Replica,
        x: &[f32],
        dy: &mut [f32],
        dx: Option<&mut [f32]>,
        scratch: &mut [f32],
    ) {
        let (d_scale, d_shift) = scratch[..2 * self.features].split_at_mut(self.features);
        sum_rows(dy, d_shift);
        sum_products(dy, x, &self.mean, &self.inverse_deviation, d_scale);
        if let Some(dx) = dx {
            let scale = replica.values(self.scale.clone());
            input_gradient(
                dy,
                x,
                &self.mean,
                &self.inverse_deviation,
                scale,
                d_scale,
                d_shift,
                dx,
            );
        }
        replica.gradient(self.chunk.start, &mut |gradient| {
            let (scale, shift) = gradient.split_at_mut(self.features);
            scale.copy_from_slice(d_scale);
            shift.copy_from_slice(d_shift);
        });
    }
}

for_each_isa! {
    /// Mean and (biased) variance of every column.
    fn observe(x: &[f32], mean: &mut [f32], variance: &mut [f32]) {
        let features = mean.len();
        let share = 1.0 / (x.len() / features) as f32;
        sum_rows(x, mean);
        for mean in mean.iter_mut() {
            *mean *= share;
        }
        variance.fill(0.0);
        for row in x.chunks_exact(features) {
            for ((variance, &x), &mean) in variance.iter_mut().zip(row).zip(&*mean) {
                *variance += (x - mean) * (x - mean);
            }
        }
        for variance in variance.iter_mut() {
            *variance *= share;
        }
    }

    fn normalise(x: &[f32], mean: &[f32], inverse: &[f32], scale: &[f32], shift: &[f32], y: &mut [f32]) {
        let n = mean.len();
        let (inverse, scale, shift) = (&inverse[..n], &scale[..n], &shift[..n]);
        for (x, y) in x.chunks_exact(n).zip(y.chunks_exact_mut(n)) {
            for j in 0..n {
                y[j] = (x[j] - mean[j]) * inverse[j] * scale[j] + shift[j];
            }
        }
    }

    /// For every column the sum of dy times the normalised x.
    fn sum_products(dy: &[f32], x: &[f32], mean: &[f32], inverse: &[f32], sum: &mut [f32]) {
        let n = sum.len();
        let (mean, inverse) = (&mean[..n], &inverse[..n]);
        sum.fill(0.0);
        for (dy, x) in dy.chunks_exact(n).zip(x.chunks_exact(n)) {
            for j in 0..n {
                sum[j] += dy[j] * ((x[j] - mean[j]) * inverse[j]);
            }
        }
    }

    fn input_gradient(
        dy: &[f32], x: &[f32], mean: &[f32], inverse: &[f32], scale: &[f32],
        d_scale: &[f32], d_shift: &[f32], dx: &mut [f32],
    ) {
        let n = mean.len();
        let (inverse, scale, d_scale, d_shift) = (&inverse[..n], &scale[..n], &d_scale[..n], &d_shift[..n]);
        let share = 1.0 / (x.len() / n) as f32;
        for ((dy, x), dx) in dy.chunks_exact(n).zip(x.chunks_exact(n)).zip(dx.chunks_exact_mut(n)) {
            for j in 0..n {
                let normalised = (x[j] - mean[j]) * inverse[j];
                let centred = dy[j] - (d_shift[j] + normalised * d_scale[j]) * share;
                dx[j] = centred * inverse[j] * scale[j];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::check_layer;
    use super::*;
    use crate::replica::Collect;

    #[test]
    fn it_agrees_with_finite_differences() {
        for (rows, features) in [(2, 1), (5, 6), (16, 33)] {
            let mut layout = Layout::default();
            let mut layer = BatchNorm::new("bn", features, &mut layout);
            check_layer(
                &mut layer,
                &layout,
                rows,
                features,
                features,
                &|state, x| {
                    let column = |j: usize| x.iter().skip(j).step_by(features);
                    let n = rows as f64;
                    (0..x.len())
                        .map(|at| {
                            let j = at % features;
                            let mean = column(j).sum::<f64>() / n;
                            let variance = column(j).map(|x| (x - mean).powi(2)).sum::<f64>() / n;
                            let normalised =
                                (x[at] - mean) / (variance + f64::from(EPSILON)).sqrt();
                            normalised * state[j] + state[features + j]
                        })
                        .collect()
                },
            );
        }
    }

    #[test]
    fn lanes_hand_out_their_share_of_the_batchs_statistics() {
        let mut layout = Layout::default();
        let mut layer = BatchNorm::new("bn", 1, &mut layout);
        layer.place_statistics(&mut layout, &mut Vec::new());
        let state = vec![1.0, 0.0, 0.0, 1.0];
        let samples = [0, 1];
        let step = Step {
            seed: 0,
            number: 0,
            samples: &samples,
            batch: 8,
        };
        let mut y = [0.0; 2];
        layer.forward(Pass::Train(step), &state, &[1.0, 3.0], &mut y, &mut []);
        let mut collect = Collect::new(&state, &layout);
        layer.statistics(step, &mut collect);
        // mean 2 and unbiased variance 2, a quarter of the batch each
        assert_eq!(collect.gradient[2..], [0.5, 0.5]);
        assert_eq!(layout.parameters, 2);
    }
}
