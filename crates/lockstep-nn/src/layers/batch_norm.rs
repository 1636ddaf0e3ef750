//! Batch normalisation: every feature is brought to mean 0 and variance 1 over the lane's rows, then
//! scaled and shifted. Of images every pixel is a row, and the features are the channels. A ReLU that
//! follows is part of the layer: neither pass visits memory for it.
//!
//! A lane normalises with its own statistics, as a worker of PyTorch's DDP does. What it observed is
//! handed out as the "gradient" of the running statistics, weighted by its share of the batch: summed
//! over the lanes that is the batch's observation, whatever the number of workers.
//!
//! Images have hundreds of thousands of rows, more than single precision can add up in a row. So blocks
//! of [`BLOCK`] rows are summed in `f32`, in registers, and the blocks in `f64`. Both passes read memory
//! twice and write it once.

use super::columns::{for_columns, group, group_mut};
use super::{Layer, Pass, Step};
use crate::NnError;
use crate::build::Site;
use crate::dims::Dims;
use crate::graph::{Attribute, Flow, LayerGraph};
use crate::init::Initial;
use crate::layout::{Layout, NumberOrder, Role};
use crate::operation::Operation;
use crate::replica::Replica;
use crate::simd::for_each_isa;
use crate::spec::LayerKind;
use std::ops::Range;

/// Batch normalisation of every channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchNorm;

impl LayerKind for BatchNorm {
    fn build(&self, site: &mut Site<'_>) -> Result<(), NnError> {
        let Site { model, chain, .. } = site;
        let (name, input) = (site.name, chain.output());
        let norm = BatchNormLayer::new(name, input.channels, site.with_relu, &mut model.layout);
        let is_frozen = model.rates.of(name) == 0.0;
        let begin = [Initial::Constant(1.0), Initial::Constant(0.0)];
        model.initial.extend(begin);
        model.normalises_vectors |= !is_frozen && input.pixels() == 1;
        chain.push_same(norm.frozen(is_frozen));
        Ok(())
    }

    fn write_graph(&self, flow: Flow, graph: &mut LayerGraph<'_>) -> Flow {
        let own = graph.tensors(&["weight", "bias", "running_mean", "running_var"]);
        let epsilon = [("epsilon", Attribute::Float(EPSILON))];
        let operator = "BatchNormalization";
        Flow {
            value: graph.apply(operator, graph.name, &flow.value, &own, &epsilon),
            ..flow
        }
    }

    fn torch_module(&self) -> String {
        "BatchNorm()".to_owned()
    }

    fn sample() -> (Dims, Self) {
        (Dims::vector(6), Self)
    }
}

/// Added to the variance, as in PyTorch.
const EPSILON: f32 = 1e-5;

/// How much of a running statistic one batch replaces, as in PyTorch.
pub const MOMENTUM: f32 = 0.1;

/// Rows that are added up in single precision.
const BLOCK: usize = 64;

/// Batch normalisation over `features` columns.
pub(crate) struct BatchNormLayer {
    name: String,
    features: usize,
    /// Whether a ReLU follows.
    relu: bool,
    /// Whether running statistics are used in training too, and none are observed.
    frozen: bool,
    scale: Range<usize>,
    shift: Range<usize>,
    chunk: Range<usize>,
    running_mean: Range<usize>,
    running_variance: Range<usize>,
    statistics_chunk: Range<usize>,
    mean: Vec<f32>,
    variance: Vec<f32>,
    inverse_deviation: Vec<f32>,
    /// The inverse deviation times the scale.
    factor: Vec<f32>,
    /// Two sums a feature, of whichever pass is going on.
    sums: [Vec<f64>; 2],
    rows: usize,
}

impl BatchNormLayer {
    /// Appends the layer's parameters to the layout. With `relu`, what is below 0 becomes 0.
    pub(crate) fn new(name: &str, features: usize, relu: bool, layout: &mut Layout) -> Self {
        let [scale, shift, chunk] = layout.push_norm(name, features);
        Self {
            name: name.to_owned(),
            features,
            relu,
            frozen: false,
            scale,
            shift,
            chunk,
            running_mean: 0..0,
            running_variance: 0..0,
            statistics_chunk: 0..0,
            mean: vec![0.0; features],
            variance: vec![0.0; features],
            inverse_deviation: vec![0.0; features],
            factor: vec![0.0; features],
            sums: [vec![0.0; features], vec![0.0; features]],
            rows: 0,
        }
    }

    /// The same layer, which never learns if `frozen`: it normalises by its running statistics, and keeps them.
    pub(crate) fn frozen(self, frozen: bool) -> Self {
        Self { frozen, ..self }
    }
}

impl Layer for BatchNormLayer {
    fn operation(&self) -> Operation {
        Operation::BatchNorm {
            features: self.features,
            relu: self.relu,
            frozen: self.frozen,
            epsilon: EPSILON,
            scale: self.scale.clone(),
            shift: self.shift.clone(),
            mean: self.running_mean.clone(),
            variance: self.running_variance.clone(),
        }
    }

    fn scratch(&self, _rows: usize) -> usize {
        2 * self.features
    }

    fn forward(&mut self, pass: Pass<'_>, state: &[f32], x: &[f32], y: &mut [f32], _: &mut [f32]) {
        self.rows = x.len() / self.features;
        match pass {
            Pass::Train(_) if !self.frozen => {
                observe(x, &mut self.sums, &mut self.mean, &mut self.variance);
            }
            _ => {
                self.mean.copy_from_slice(&state[self.running_mean.clone()]);
                self.variance
                    .copy_from_slice(&state[self.running_variance.clone()]);
            }
        }
        for (j, scale) in state[self.scale.clone()].iter().enumerate() {
            self.inverse_deviation[j] = 1.0 / (self.variance[j] + EPSILON).sqrt();
            self.factor[j] = self.inverse_deviation[j] * scale;
        }
        let line = ColumnLine {
            mean: &self.mean,
            factor: &self.factor,
            shift: &state[self.shift.clone()],
        };
        normalise(x, line, self.relu, y);
    }

    fn place_statistics(&mut self, layout: &mut Layout, initial: &mut Vec<Initial>) {
        let shape = vec![self.features];
        let mean = format!("{}.running_mean", self.name);
        let variance = format!("{}.running_var", self.name);
        self.running_mean = layout.push(mean, shape.clone(), NumberOrder::AsIs, Role::Statistic);
        self.running_variance = layout.push(variance, shape, NumberOrder::AsIs, Role::Statistic);
        self.statistics_chunk = layout.cut([2 * self.features]);
        if self.frozen {
            layout.rates[self.statistics_chunk.start] = 0.0;
        }
        initial.extend([Initial::Constant(0.0), Initial::Constant(1.0)]);
    }

    fn statistics(&mut self, step: Step<'_>, replica: &mut dyn Replica) {
        let rows = self.rows as f32;
        let share = step.samples.len() as f32 / step.batch as f32;
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
        let line = ColumnLine {
            mean: &self.mean,
            factor: &self.factor,
            shift: &replica.state()[self.shift.clone()],
        };
        if self.frozen {
            // Statistics that do not follow from `x` leave a line.
            if let Some(dx) = dx {
                let (offset, slope) = scratch[..2 * self.features].split_at_mut(self.features);
                offset.fill(0.0);
                slope.fill(0.0);
                input_gradient(x, dy, line, self.relu, offset, slope, dx);
            }
            return;
        }
        sum_gradients(x, dy, line, self.relu, &mut self.sums);
        let [d_shift, d_scale] = &mut self.sums;
        for (sum, &inverse) in d_scale.iter_mut().zip(&self.inverse_deviation) {
            *sum *= f64::from(inverse);
        }
        if let Some(dx) = dx {
            let (offset, slope) = scratch[..2 * self.features].split_at_mut(self.features);
            let share = 1.0 / self.rows as f64;
            for j in 0..self.features {
                offset[j] = (d_shift[j] * share) as f32;
                slope[j] = (d_scale[j] * share * f64::from(self.inverse_deviation[j])) as f32;
            }
            input_gradient(x, dy, line, self.relu, offset, slope, dx);
        }
        replica.gradient(self.chunk.start, &mut |gradient| {
            let sums = d_scale.iter().chain(d_shift.iter());
            for (out, &sum) in gradient.iter_mut().zip(sums) {
                *out = sum as f32;
            }
        });
    }
}

/// What the forward pass makes of every column: `(x - mean) * factor + shift`. The backward pass computes
/// it again, to the same bits, to see what the ReLU let through.
#[derive(Clone, Copy)]
struct ColumnLine<'a> {
    mean: &'a [f32],
    factor: &'a [f32],
    shift: &'a [f32],
}

impl<'a> ColumnLine<'a> {
    /// Mean, factor and shift of a group of columns.
    #[inline(always)]
    fn group<const W: usize>(self, at: usize) -> [&'a [f32; W]; 3] {
        [self.mean, self.factor, self.shift].map(|row| group(row, at))
    }
}

for_each_isa! {
    /// Mean and (biased) variance of every column. `sums` is room to work in.
    fn observe(x: &[f32], sums: &mut [Vec<f64>; 2], mean: &mut [f32], variance: &mut [f32]) {
        let n = mean.len();
        let [means, squares] = sums;
        means.fill(0.0);
        squares.fill(0.0);
        for block in x.chunks(BLOCK * n) {
            let rows = (block.len() / n) as f64;
            let share = 1.0 / rows as f32;
            for_columns!(n, |at, W| {
                let mut sum = [0.0; W];
                for row in block.chunks_exact(n) {
                    let x = group::<W>(row, at);
                    for j in 0..W {
                        sum[j] += x[j];
                    }
                }
                let mean = sum.map(|sum| sum * share);
                // The block's mean need only be near: squares are small about it, and lose nothing.
                let mut square = [0.0; W];
                for row in block.chunks_exact(n) {
                    let x = group::<W>(row, at);
                    for j in 0..W {
                        square[j] += (x[j] - mean[j]) * (x[j] - mean[j]);
                    }
                }
                for j in 0..W {
                    let mean = f64::from(mean[j]);
                    means[at + j] += rows * mean;
                    squares[at + j] += f64::from(square[j]) + rows * (mean * mean);
                }
            });
        }
        let share = 1.0 / (x.len() / n) as f64;
        for j in 0..n {
            let middle = means[j] * share;
            let square = squares[j] * share - middle * middle;
            mean[j] = middle as f32;
            variance[j] = if square < 0.0 { 0.0 } else { square as f32 };
        }
    }

    fn normalise(x: &[f32], line: ColumnLine<'_>, relu: bool, y: &mut [f32]) {
        let n = line.mean.len();
        for (x, y) in x.chunks(BLOCK * n).zip(y.chunks_mut(BLOCK * n)) {
            for_columns!(n, |at, W| {
                let [mean, factor, shift] = line.group::<W>(at);
                for (x, y) in x.chunks_exact(n).zip(y.chunks_exact_mut(n)) {
                    let (x, y) = (group::<W>(x, at), group_mut::<W>(y, at));
                    for j in 0..W {
                        let value = (x[j] - mean[j]) * factor[j] + shift[j];
                        // NaN stays NaN, so that a diverged run shows.
                        y[j] = if relu && value < 0.0 { 0.0 } else { value };
                    }
                }
            });
        }
    }

    /// For every column the sums of dy and of dy times the distance of x from its mean.
    fn sum_gradients(x: &[f32], dy: &[f32], line: ColumnLine<'_>, relu: bool, sums: &mut [Vec<f64>; 2]) {
        let n = line.mean.len();
        let [plain, by_distance] = sums;
        plain.fill(0.0);
        by_distance.fill(0.0);
        for (x, dy) in x.chunks(BLOCK * n).zip(dy.chunks(BLOCK * n)) {
            for_columns!(n, |at, W| {
                let [mean, factor, shift] = line.group::<W>(at);
                let mut sums = [[0.0; W]; 2];
                for (x, dy) in x.chunks_exact(n).zip(dy.chunks_exact(n)) {
                    let (x, dy) = (group::<W>(x, at), group::<W>(dy, at));
                    for j in 0..W {
                        let distance = x[j] - mean[j];
                        let stopped = relu && distance * factor[j] + shift[j] <= 0.0;
                        let dy = if stopped { 0.0 } else { dy[j] };
                        sums[0][j] += dy;
                        sums[1][j] += dy * distance;
                    }
                }
                for j in 0..W {
                    plain[at + j] += f64::from(sums[0][j]);
                    by_distance[at + j] += f64::from(sums[1][j]);
                }
            });
        }
    }

    /// `factor * (dy - offset - slope * (x - mean))`, where the ReLU stopped nothing.
    fn input_gradient(
        x: &[f32], dy: &[f32], line: ColumnLine<'_>, relu: bool, offset: &[f32], slope: &[f32], dx: &mut [f32],
    ) {
        let n = line.mean.len();
        let rows = BLOCK * n;
        for ((x, dy), dx) in x.chunks(rows).zip(dy.chunks(rows)).zip(dx.chunks_mut(rows)) {
            for_columns!(n, |at, W| {
                let [mean, factor, shift] = line.group::<W>(at);
                let (offset, slope) = (group::<W>(offset, at), group::<W>(slope, at));
                let whole = x.chunks_exact(n).zip(dy.chunks_exact(n)).zip(dx.chunks_exact_mut(n));
                for ((x, dy), dx) in whole {
                    let (x, dy) = (group::<W>(x, at), group::<W>(dy, at));
                    let dx = group_mut::<W>(dx, at);
                    for j in 0..W {
                        let distance = x[j] - mean[j];
                        let stopped = relu && distance * factor[j] + shift[j] <= 0.0;
                        let dy = if stopped { 0.0 } else { dy[j] };
                        dx[j] = factor[j] * (dy - offset[j] - slope[j] * distance);
                    }
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::check_layer;
    use super::*;
    use crate::replica::Collect;

    fn definition(features: usize, relu: bool, state: &[f64], x: &[f64]) -> Vec<f64> {
        let column = |j: usize| x.iter().skip(j).step_by(features);
        let n = (x.len() / features) as f64;
        let one = |at: usize| {
            let j = at % features;
            let mean = column(j).sum::<f64>() / n;
            let variance = column(j).map(|x| (x - mean).powi(2)).sum::<f64>() / n;
            let normalised = (x[at] - mean) / (variance + f64::from(EPSILON)).sqrt();
            let y = normalised * state[j] + state[features + j];
            if relu { y.max(0.0) } else { y }
        };
        (0..x.len()).map(one).collect()
    }

    #[test]
    fn it_agrees_with_finite_differences() {
        for (rows, features) in [(2, 1), (5, 6), (16, 33), (3, 47)] {
            for relu in [false, true] {
                let mut layout = Layout::default();
                let mut layer = BatchNormLayer::new("bn", features, relu, &mut layout);
                let definition = |state: &[f64], x: &[f64]| definition(features, relu, state, x);
                check_layer(&mut layer, &layout, rows, features, features, &definition);
            }
        }
    }

    #[test]
    fn images_are_normalised_over_all_their_pixels() {
        // Batch 1 of 9 x 15 pixels: more than two blocks of rows.
        let mut layout = Layout::default();
        let mut layer = BatchNormLayer::new("bn", 3, true, &mut layout);
        let definition = |state: &[f64], x: &[f64]| definition(3, true, state, x);
        check_layer(&mut layer, &layout, 1, 9 * 15 * 3, 9 * 15 * 3, &definition);
    }

    #[test]
    fn lanes_hand_out_their_share_of_the_batchs_statistics() {
        let mut layout = Layout::default();
        let mut layer = BatchNormLayer::new("bn", 1, false, &mut layout);
        layer.place_statistics(&mut layout, &mut Vec::new());
        let state = vec![1.0, 0.0, 0.0, 1.0];
        let samples = [0, 1];
        let step = Step {
            seed: 0,
            number: 0,
            samples: &samples,
            batch: 8,
        };
        // Vectors of one number, and images of two pixels: a share is one of samples, not of rows.
        for x in [&[1.0f32, 3.0][..], &[2.0, 2.0, 0.5, 3.5]] {
            let mut y = vec![0.0; x.len()];
            layer.forward(Pass::Train(step), &state, x, &mut y, &mut []);
            let mut collect = Collect::new(&state, &layout);
            layer.statistics(step, &mut collect);
            // mean 2 and unbiased variance 2 or 1.5, a quarter of the batch each
            let variance = if x.len() == 2 { 2.0 } else { 1.5 };
            assert_eq!(collect.gradient[2..], [0.5, variance / 4.0]);
        }
        assert_eq!(layout.parameters, 2);
    }

    #[test]
    fn a_frozen_layer_is_a_line_by_its_running_statistics() {
        let mut layout = Layout::default();
        let mut layer = BatchNormLayer::new("bn", 2, true, &mut layout).frozen(true);
        layer.place_statistics(&mut layout, &mut Vec::new());
        assert_eq!(layout.rates, [1.0, 0.0]);
        let state = [2.0, 3.0, 0.5, -1.0, 1.0, -2.0, 4.0, 0.25];
        let x = [3.0, -1.0, -9.0, -2.0, 2.0, -1.5];
        let step = Step {
            seed: 0,
            number: 0,
            samples: &[0, 1, 2],
            batch: 3,
        };
        let (mut trained, mut evaluated) = ([0.0; 6], [0.0; 6]);
        layer.forward(Pass::Train(step), &state, &x, &mut trained, &mut []);
        layer.forward(Pass::Evaluate, &state, &x, &mut evaluated, &mut []);
        assert_eq!(trained, evaluated);
        let mut collect = Collect::new(&state, &layout);
        layer.forward(Pass::Train(step), &state, &x, &mut trained, &mut []);
        let (mut dx, mut scratch) = ([0.0; 6], [f32::NAN; 4]);
        let dy = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        layer.backward(
            &mut collect,
            &x,
            &mut dy.clone(),
            Some(&mut dx),
            &mut scratch,
        );
        for at in 0..x.len() {
            let feature = at % 2;
            let slope = f64::from(state[feature]) / f64::from(state[6 + feature] + EPSILON).sqrt();
            let passed = if trained[at] > 0.0 {
                f64::from(dy[at])
            } else {
                0.0
            };
            assert!(
                (f64::from(dx[at]) - slope * passed).abs() < 1e-5,
                "{at}: {dx:?}"
            );
        }
        assert!(trained.iter().any(|&y| y > 0.0) && trained.contains(&0.0));
    }

    #[test]
    fn many_rows_far_from_0_lose_no_precision() {
        // Single precision would add up 200,000 rows of about 1,000 to 4 digits.
        let rows = 200_001;
        let x: Vec<f32> = (0..rows).map(|i| 1000.0 + (i % 3) as f32).collect();
        let (mut mean, mut variance) = ([0.0], [0.0]);
        observe(&x, &mut [vec![0.0], vec![0.0]], &mut mean, &mut variance);
        assert_eq!(mean, [1001.0]);
        assert!((variance[0] - 2.0 / 3.0).abs() < 1e-6, "{variance:?}");
    }

    #[test]
    fn a_constant_column_has_no_variance_and_a_nan_is_not_hidden() {
        let mut layout = Layout::default();
        let mut layer = BatchNormLayer::new("bn", 2, true, &mut layout);
        let samples = [0, 1, 2];
        let step = Step {
            seed: 0,
            number: 0,
            samples: &samples,
            batch: 3,
        };
        let x = [0.1, 1.0, 0.1, f32::NAN, 0.1, 2.0];
        let mut y = [0.0; 6];
        layer.forward(
            Pass::Train(step),
            &[1.0, 1.0, 0.5, 0.0],
            &x,
            &mut y,
            &mut [],
        );
        for row in y.chunks(2) {
            assert!((row[0] - 0.5).abs() < 1e-4, "{y:?}");
            assert!(row[1].is_nan());
        }
    }
}
