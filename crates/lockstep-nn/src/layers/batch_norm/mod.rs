//! Batch normalisation: every feature is brought to mean 0 and variance 1 over the lane's rows, then
//! scaled and shifted. Of images every pixel is a row, and the features are the channels. A ReLU that
//! follows is part of the layer: neither pass visits memory for it.
//!
//! A lane normalises with its own statistics, as a worker of PyTorch's DDP does. What it observed is
//! handed out as the "gradient" of the running statistics, weighted by its share of the batch: summed
//! over the lanes that is the batch's observation, whatever the number of workers.
//!
//! Images have hundreds of thousands of rows, more than single precision can add up in a row. So blocks
//! of [`BLOCK`] rows are summed in `f32`, in registers, and the blocks in `f64`, in their order. Both passes read memory
//! twice and write it once.

mod blocks;

use super::columns::{for_columns, group, group_mut};
use super::{Layer, Pass, carve, carved};
use crate::NnError;
use crate::build::Site;
use crate::dims::Dims;
use crate::graph::{Attribute, Flow, LayerGraph};
use crate::init::Initial;
use crate::layout::{Layout, NumberOrder, Role};
use crate::operation::Operation;
use crate::replica::{Replica, written};
use crate::simd::for_each_isa;
use crate::spec::LayerKind;
use crate::threads::{SharedMut, Threads};
use blocks::{BLOCK, Blocks};
use std::ops::Range;

/// Batch normalisation of every channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchNorm;

impl LayerKind for BatchNorm {
    fn build(&self, site: &mut Site<'_>) -> Result<(), NnError> {
        let Site { model, chain, .. } = site;
        let (name, input) = (site.name, chain.output());
        let (lanes, layout) = (model.lanes, &mut model.layout);
        let norm = BatchNormLayer::new(name, input, site.with_relu, lanes, layout);
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

/// Batch normalisation over `features` columns.
pub(crate) struct BatchNormLayer {
    name: String,
    features: usize,
    /// Rows that a row of the batch is: the pixels of an image.
    pixels: usize,
    /// The most lanes of a pass.
    lanes: usize,
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
    /// What follows are numbers of every feature, lane by lane.
    mean: Vec<f32>,
    variance: Vec<f32>,
    inverse_deviation: Vec<f32>,
    /// The inverse deviation times the scale.
    factor: Vec<f32>,
    /// The sums of the gradient, and of the gradient times the normalised numbers.
    sums: [Vec<f64>; 2],
}

impl BatchNormLayer {
    /// Appends the layer's parameters to the layout, for images of this shape and at most so many lanes. With `relu`,
    /// what is below 0 becomes 0.
    pub(crate) fn new(
        name: &str,
        input: Dims,
        relu: bool,
        lanes: usize,
        layout: &mut Layout,
    ) -> Self {
        let features = input.channels;
        let [scale, shift, chunk] = layout.push_norm(name, features);
        let numbers = lanes * features;
        Self {
            name: name.to_owned(),
            features,
            pixels: input.pixels(),
            lanes,
            relu,
            frozen: false,
            scale,
            shift,
            chunk,
            running_mean: 0..0,
            running_variance: 0..0,
            statistics_chunk: 0..0,
            mean: vec![0.0; numbers],
            variance: vec![0.0; numbers],
            inverse_deviation: vec![0.0; numbers],
            factor: vec![0.0; numbers],
            sums: [vec![0.0; numbers], vec![0.0; numbers]],
        }
    }

    /// The same layer, which never learns if `frozen`: it normalises by its running statistics, and keeps them.
    pub(crate) fn frozen(self, frozen: bool) -> Self {
        Self { frozen, ..self }
    }

    /// The features of a lane.
    fn of_lane(&self, lane: usize) -> Range<usize> {
        lane * self.features..(lane + 1) * self.features
    }

    /// Finds the mean and the variance of every lane.
    fn observe(&mut self, threads: &Threads, blocks: Blocks<'_>, x: &[f32], scratch: &mut [f32]) {
        let n = self.features;
        let (parts, _) = carve(scratch, 2 * n * blocks.count());
        blocks.sum(threads, n, parts, |_, rows, part| {
            observe(&x[rows.start * n..rows.end * n], part);
        });
        let to = [&mut self.mean[..], &mut self.variance];
        blocks.combine(threads, n, parts, to, |rows, parts, first, to| {
            combine_observed(parts, rows, n, first, to);
        });
    }

    /// Finds the sums of the gradient of every lane.
    fn sum_gradients(
        &mut self,
        threads: &Threads,
        blocks: Blocks<'_>,
        (x, dy): (&[f32], &[f32]),
        shift: &[f32],
        parts: &mut [f32],
    ) {
        let (n, relu) = (self.features, self.relu);
        blocks.sum(threads, n, parts, |lane, rows, part| {
            let line = self.line(lane, shift);
            let rows = rows.start * n..rows.end * n;
            sum_gradients(&x[rows.clone()], &dy[rows], line, relu, part);
        });
        let to = self.sums.each_mut().map(|sums| &mut sums[..]);
        blocks.combine(threads, n, parts, to, |_, parts, first, to| {
            combine_sums(parts, n, first, to);
        });
        let numbers = blocks.lanes.len() * n;
        let by_normal = &mut self.sums[1][..numbers];
        for (sum, &inverse) in by_normal.iter_mut().zip(&self.inverse_deviation) {
            *sum *= f64::from(inverse);
        }
    }

    /// What the forward pass makes of every column of a lane.
    fn line<'a>(&'a self, lane: usize, shift: &'a [f32]) -> ColumnLine<'a> {
        let own = self.of_lane(lane);
        ColumnLine {
            mean: &self.mean[own.clone()],
            factor: &self.factor[own],
            shift,
        }
    }

    /// The blocks of a pass. Running statistics are the same for all rows, which are one lane then.
    fn blocks<'a>(&self, pass: Pass<'a>, rows: &'a Range<usize>) -> Blocks<'a> {
        let lanes = match self.frozen || pass.step.is_none() {
            true => std::slice::from_ref(rows),
            false => pass.lanes,
        };
        let pixels = self.pixels;
        Blocks { lanes, pixels }
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

    fn scratch(&self, _: &Threads, rows: usize) -> usize {
        let blocks = rows * self.pixels / BLOCK + self.lanes;
        carved(2 * self.features * blocks) + 2 * carved(self.lanes * self.features)
    }

    fn forward(
        &mut self,
        pass: Pass<'_>,
        state: &[f32],
        x: &[f32],
        y: &mut [f32],
        scratch: &mut [f32],
    ) {
        let (n, relu) = (self.features, self.relu);
        let rows = 0..x.len() / (n * self.pixels);
        let blocks = self.blocks(pass, &rows);
        if self.frozen || pass.step.is_none() {
            self.mean[..n].copy_from_slice(&state[self.running_mean.clone()]);
            self.variance[..n].copy_from_slice(&state[self.running_variance.clone()]);
        } else {
            self.observe(pass.threads, blocks, x, scratch);
        }
        for lane in 0..blocks.lanes.len() {
            let own = self.of_lane(lane);
            for (j, scale) in own.zip(&state[self.scale.clone()]) {
                self.inverse_deviation[j] = 1.0 / (self.variance[j] + EPSILON).sqrt();
                self.factor[j] = self.inverse_deviation[j] * scale;
            }
        }
        let shift = &state[self.shift.clone()];
        let y = SharedMut::new(y);
        blocks.each(pass.threads, n, |lane, rows| {
            let rows = rows.start * n..rows.end * n;
            // SAFETY: blocks do not overlap.
            let y = unsafe { y.part(rows.clone()) };
            normalise(&x[rows], self.line(lane, shift), relu, y);
        });
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

    fn statistics(&mut self, pass: Pass<'_>, replica: &mut dyn Replica) {
        let batch = pass.step.map_or(0, |step| step.batch);
        let lanes = 0..pass.lanes.len();
        let observed = written(|lane: usize, _, observed: &mut [f32]| {
            let own = self.of_lane(lane);
            let rows = pass.lanes[lane].len();
            let share = rows as f32 / batch as f32;
            let rows = (rows * self.pixels) as f32;
            let unbiased = rows / (rows - 1.0) * share;
            let (mean, variance) = observed.split_at_mut(self.features);
            for (out, &mean) in mean.iter_mut().zip(&self.mean[own.clone()]) {
                *out = mean * share;
            }
            for (out, &variance) in variance.iter_mut().zip(&self.variance[own]) {
                *out = variance * unbiased;
            }
        });
        replica.gradient(lanes, self.statistics_chunk.clone(), &observed);
    }

    fn backward(
        &mut self,
        pass: Pass<'_>,
        replica: &mut dyn Replica,
        x: &[f32],
        dy: &mut [f32],
        dx: Option<&mut [f32]>,
        scratch: &mut [f32],
    ) {
        let n = self.features;
        let all = 0..x.len() / (n * self.pixels);
        let blocks = self.blocks(pass, &all);
        let numbers = blocks.lanes.len() * n;
        let (offset, scratch) = carve(scratch, numbers);
        let (slope, scratch) = carve(scratch, numbers);
        if self.frozen {
            // Statistics that do not follow from `x` leave a line.
            offset.fill(0.0);
            slope.fill(0.0);
        } else {
            let (parts, _) = carve(scratch, 2 * n * blocks.count());
            let shift = &replica.state()[self.shift.clone()];
            self.sum_gradients(pass.threads, blocks, (x, dy), shift, parts);
            let [d_shift, d_scale] = &self.sums;
            for (lane, rows) in blocks.lanes.iter().enumerate() {
                let share = 1.0 / (rows.len() * self.pixels) as f64;
                for j in self.of_lane(lane) {
                    offset[j] = (d_shift[j] * share) as f32;
                    slope[j] = (d_scale[j] * share * f64::from(self.inverse_deviation[j])) as f32;
                }
            }
        }
        if let Some(dx) = dx {
            let shift = &replica.state()[self.shift.clone()];
            let dx = SharedMut::new(dx);
            blocks.each(pass.threads, n, |lane, rows| {
                let (own, line) = (self.of_lane(lane), self.line(lane, shift));
                let follow = [&offset[own.clone()], &slope[own]];
                let rows = rows.start * n..rows.end * n;
                // SAFETY: blocks do not overlap.
                let dx = unsafe { dx.part(rows.clone()) };
                input_gradient(&x[rows.clone()], &dy[rows], line, self.relu, follow, dx);
            });
        }
        if self.frozen {
            return;
        }
        let lanes = 0..pass.lanes.len();
        let handed_out = written(|lane, _, gradient| {
            let own = self.of_lane(lane);
            let [d_shift, d_scale] = self.sums.each_ref().map(|sums| &sums[own.clone()]);
            for (out, &sum) in gradient.iter_mut().zip(d_scale.iter().chain(d_shift)) {
                *out = sum as f32;
            }
        });
        replica.gradient(lanes, self.chunk.clone(), &handed_out);
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
    /// The mean of every column of a block, and the sum of squares about it.
    fn observe(block: &[f32], part: &mut [f32]) {
        let n = part.len() / 2;
        let share = 1.0 / (block.len() / n) as f32;
        let (means, squares) = part.split_at_mut(n);
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
            *group_mut(means, at) = mean;
            *group_mut(squares, at) = square;
        });
    }

    /// Mean and (biased) variance of some columns, from `first` on, by what was observed of all blocks of `rows` rows.
    fn combine_observed(
        parts: &[f32], rows: usize, n: usize, first: usize, to: [&mut [f32]; 2],
    ) {
        let [mean, variance] = to;
        let share = 1.0 / rows as f64;
        for_columns!(mean.len(), |at, W| {
            let (mut means, mut squares) = ([0.0; W], [0.0; W]);
            for (block, part) in parts.chunks_exact(2 * n).enumerate() {
                let rows = BLOCK.min(rows - block * BLOCK) as f64;
                let (of_mean, of_square) = part.split_at(n);
                let mean = group::<W>(of_mean, first + at);
                let square = group::<W>(of_square, first + at);
                for j in 0..W {
                    let mean = f64::from(mean[j]);
                    means[j] += rows * mean;
                    squares[j] += f64::from(square[j]) + rows * (mean * mean);
                }
            }
            for j in 0..W {
                let middle = means[j] * share;
                let square = squares[j] * share - middle * middle;
                mean[at + j] = middle as f32;
                variance[at + j] = if square < 0.0 { 0.0 } else { square as f32 };
            }
        });
    }

    fn normalise(x: &[f32], line: ColumnLine<'_>, relu: bool, y: &mut [f32]) {
        let n = line.mean.len();
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

    /// For every column of a block the sums of dy and of dy times the distance of x from its mean.
    fn sum_gradients(x: &[f32], dy: &[f32], line: ColumnLine<'_>, relu: bool, part: &mut [f32]) {
        let n = line.mean.len();
        let (plain, by_distance) = part.split_at_mut(n);
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
            *group_mut(plain, at) = sums[0];
            *group_mut(by_distance, at) = sums[1];
        });
    }

    /// Adds up both sums of all blocks, of some columns from `first` on.
    fn combine_sums(parts: &[f32], n: usize, first: usize, to: [&mut [f64]; 2]) {
        let [plain, by_distance] = to;
        for_columns!(plain.len(), |at, W| {
            let mut sums = [[0.0; W]; 2];
            for part in parts.chunks_exact(2 * n) {
                for (sums, part) in sums.iter_mut().zip(part.chunks_exact(n)) {
                    let part = group::<W>(part, first + at);
                    for j in 0..W {
                        sums[j] += f64::from(part[j]);
                    }
                }
            }
            plain[at..at + W].copy_from_slice(&sums[0]);
            by_distance[at..at + W].copy_from_slice(&sums[1]);
        });
    }

    /// `factor * (dy - offset - slope * (x - mean))`, where the ReLU stopped nothing.
    fn input_gradient(
        x: &[f32], dy: &[f32], line: ColumnLine<'_>, relu: bool, follow: [&[f32]; 2], dx: &mut [f32],
    ) {
        let n = line.mean.len();
        let [offset, slope] = follow;
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

#[cfg(test)]
mod tests {
    use super::super::check::{check_layer, one_lane};
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
                let mut layer =
                    BatchNormLayer::new("bn", Dims::vector(features), relu, 1, &mut layout);
                let definition = |state: &[f64], x: &[f64]| definition(features, relu, state, x);
                check_layer(&mut layer, &layout, rows, features, features, &definition);
            }
        }
    }

    #[test]
    fn images_are_normalised_over_all_their_pixels() {
        // Batch 1 of 9 x 15 pixels: more than two blocks of rows.
        let mut layout = Layout::default();
        let mut layer = BatchNormLayer::new("bn", Dims::image(9, 15, 3), true, 1, &mut layout);
        let definition = |state: &[f64], x: &[f64]| definition(3, true, state, x);
        check_layer(&mut layer, &layout, 1, 9 * 15 * 3, 9 * 15 * 3, &definition);
    }

    #[test]
    fn lanes_hand_out_their_share_of_the_batchs_statistics() {
        // Vectors of one number, and images of two pixels: a share is one of samples, not of rows.
        for (pixels, x) in [(1, &[1.0f32, 3.0][..]), (2, &[2.0, 2.0, 0.5, 3.5])] {
            let mut layout = Layout::default();
            let input = Dims::image(1, pixels, 1);
            let mut layer = BatchNormLayer::new("bn", input, false, 1, &mut layout);
            layer.place_statistics(&mut layout, &mut Vec::new());
            let state = vec![1.0, 0.0, 0.0, 1.0];
            let (mut y, mut scratch) = (vec![0.0; x.len()], [f32::NAN; 99]);
            one_lane(8, &[0, 1], |pass| {
                layer.forward(pass, &state, x, &mut y, &mut scratch);
                let mut collect = Collect::new(&state, &layout);
                layer.statistics(pass, &mut collect);
                // mean 2 and unbiased variance 2 or 1.5, a quarter of the batch each
                let variance = if x.len() == 2 { 2.0 } else { 1.5 };
                assert_eq!(collect.gradient[2..], [0.5, variance / 4.0]);
            });
            assert_eq!(layout.parameters, 2);
        }
    }

    #[test]
    fn a_frozen_layer_is_a_line_by_its_running_statistics() {
        let mut layout = Layout::default();
        let mut layer =
            BatchNormLayer::new("bn", Dims::vector(2), true, 1, &mut layout).frozen(true);
        layer.place_statistics(&mut layout, &mut Vec::new());
        assert_eq!(layout.rates, [1.0, 0.0]);
        let state = [2.0, 3.0, 0.5, -1.0, 1.0, -2.0, 4.0, 0.25];
        let x = [3.0, -1.0, -9.0, -2.0, 2.0, -1.5];
        let (mut trained, mut evaluated) = ([0.0; 6], [0.0; 6]);
        let (threads, mut scratch) = (Threads::default(), [f32::NAN; 99]);
        let evaluation = Pass::evaluation(&threads);
        layer.forward(evaluation, &state, &x, &mut evaluated, &mut scratch);
        let (mut dx, dy) = ([0.0; 6], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let mut collect = Collect::new(&state, &layout);
        one_lane(3, &[0, 1, 2], |pass| {
            layer.forward(pass, &state, &x, &mut trained, &mut scratch);
            let dx = Some(&mut dx[..]);
            layer.backward(pass, &mut collect, &x, &mut dy.clone(), dx, &mut scratch);
        });
        assert_eq!(trained, evaluated);
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
        let input = Dims::vector(1);
        let mut layer = BatchNormLayer::new("bn", input, false, 1, &mut Layout::default());
        let threads = Threads::default();
        let mut scratch = vec![f32::NAN; layer.scratch(&threads, rows)];
        let rows = 0..rows;
        let lanes = std::slice::from_ref(&rows);
        let blocks = Blocks { lanes, pixels: 1 };
        layer.observe(&threads, blocks, &x, &mut scratch);
        assert_eq!(layer.mean, [1001.0]);
        let variance = layer.variance[0];
        assert!((variance - 2.0 / 3.0).abs() < 1e-6, "{variance:?}");
    }

    #[test]
    fn a_constant_column_has_no_variance_and_a_nan_is_not_hidden() {
        let mut layout = Layout::default();
        let mut layer = BatchNormLayer::new("bn", Dims::vector(2), true, 1, &mut layout);
        let x = [0.1, 1.0, 0.1, f32::NAN, 0.1, 2.0];
        let (mut y, mut scratch) = ([0.0; 6], [f32::NAN; 99]);
        one_lane(3, &[0, 1, 2], |pass| {
            layer.forward(pass, &[1.0, 1.0, 0.5, 0.0], &x, &mut y, &mut scratch);
        });
        for row in y.chunks(2) {
            assert!((row[0] - 0.5).abs() < 1e-4, "{y:?}");
            assert!(row[1].is_nan());
        }
    }
}
