//! Normalisation within a row: layer-norm and group-norm, as PyTorch defines them.
//!
//! The channels of a row are parted into groups, and each group, over all its pixels, is brought to mean 0 and variance
//! 1; then every channel is scaled and shifted. Layer-norm is the same with one group and every pixel a row of its own:
//! a vector is normalised over its numbers, an image pixel by pixel over its channels.
//!
//! A row is normalised by itself, in training as in evaluation: lanes and running statistics do not come into it.

use super::{Layer, Pass};
use crate::NnError;
use crate::build::{ModelBuilder, Site, check_groups};
use crate::chain::Chain;
use crate::dims::Dims;
use crate::graph::{Attribute, Flow, LayerGraph};
use crate::init::Initial;
use crate::layout::Layout;
use crate::operation::Operation;
use crate::replica::{Replica, written};
use crate::spec::LayerKind;
use crate::threads::{pieces, pieces_mut, rows_of_a_tile};
use std::ops::Range;

/// The settings of a group-norm: groups of channels are normalised over the image, row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupNorm {
    /// How many groups the channels are parted into.
    pub groups: usize,
}

impl LayerKind for GroupNorm {
    fn build(&self, site: &mut Site<'_>) -> Result<(), NnError> {
        let Site { model, chain, .. } = site;
        let (input, rows) = (chain.output(), model.rows);
        check_groups(site.name, self.groups, &[input.channels])?;
        let groups = (input.channels, self.groups);
        GroupNormLayer::build(site.name, groups, (input.pixels(), rows), model, chain);
        Ok(())
    }

    /// Groups of channels, each as one long channel of an image that is normalised by itself; then the scale and the
    /// shift of every channel.
    fn write_graph(&self, flow: Flow, graph: &mut LayerGraph<'_>) -> Flow {
        let flow = graph.as_image(flow);
        let dims = flow.dims;
        let groups = self.groups;
        // 0 stands for as many as there are, -1 for all that are left.
        let long = [0, groups as i64, -1];
        let long = graph.graph.integers(&graph.part("long_shape"), &long);
        let whole = [0, dims.channels, dims.height, dims.width].map(|length| length as i64);
        let whole = graph.graph.integers(&graph.part("whole_shape"), &whole);
        let (ones, zeros) = (vec![1.0; groups], vec![0.0; groups]);
        let ones = graph.graph.numbers(&graph.part("ones"), &[groups], &ones);
        let zeros = graph.graph.numbers(&graph.part("zeros"), &[groups], &zeros);
        let long = graph.part_node("long", "Reshape", &[&flow.value, &long], &[]);
        let inputs = [&long[..], &ones, &zeros];
        let epsilon = [("epsilon", Attribute::Float(EPSILON as f32))];
        let normal = graph.part_node("normal", "InstanceNormalization", &inputs, &epsilon);
        let normal = graph.part_node("whole", "Reshape", &[&normal, &whole], &[]);
        let mut of_channels = |tensor: &str| {
            let own = graph.tensor(tensor).expect("the layer has it");
            let name = graph.part(&format!("{tensor}_shape"));
            let shape = graph.graph.integers(&name, &[dims.channels as i64, 1, 1]);
            graph.part_node(&format!("{tensor}s"), "Reshape", &[&own, &shape], &[])
        };
        let (scale, shift) = (of_channels("weight"), of_channels("bias"));
        let scaled = graph.part_node("scaled", "Mul", &[&normal, &scale], &[]);
        Flow {
            value: graph.node("Add", &[&scaled, &shift], &[]),
            ..flow
        }
    }

    fn torch_module(&self) -> String {
        format!("GroupNorm({})", self.groups)
    }

    fn sample() -> (Dims, Self) {
        (Dims::image(3, 4, 6), Self { groups: 2 })
    }
}

/// Layer-norm: every pixel is normalised over its channels; a vector, over its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerNorm;

impl LayerKind for LayerNorm {
    fn build(&self, site: &mut Site<'_>) -> Result<(), NnError> {
        let Site { model, chain, .. } = site;
        let input = chain.output();
        // Every pixel is a row of its own.
        let rows = (1, model.rows * input.pixels());
        GroupNormLayer::build(site.name, (input.channels, 1), rows, model, chain);
        Ok(())
    }

    /// Channels of images are brought to the end for it.
    fn write_graph(&self, flow: Flow, graph: &mut LayerGraph<'_>) -> Flow {
        let own = graph.tensors(&["weight", "bias"]);
        let epsilon = Attribute::Float(EPSILON as f32);
        let settings = [("axis", Attribute::Int(-1)), ("epsilon", epsilon)];
        let operator = "LayerNormalization";
        let value = match flow.flat {
            true => graph.apply(operator, graph.name, &flow.value, &own, &settings),
            false => {
                let last = [("perm", Attribute::Ints(vec![0, 2, 3, 1]))];
                let first = [("perm", Attribute::Ints(vec![0, 3, 1, 2]))];
                let pixels = graph.part_node("pixels", "Transpose", &[&flow.value], &last);
                let normal = graph.part("normal");
                let normal = graph.apply(operator, &normal, &pixels, &own, &settings);
                graph.node("Transpose", &[&normal], &first)
            }
        };
        Flow { value, ..flow }
    }

    fn torch_module(&self) -> String {
        "PixelNorm()".to_owned()
    }

    fn sample() -> (Dims, Self) {
        (Dims::image(3, 4, 6), Self)
    }
}

/// Added to the variance, as in PyTorch.
const EPSILON: f64 = 1e-5;

/// Channels whose gradients one thread sums up.
const CHANNELS: usize = 32;

/// Sums that run side by side, so that none waits for the addition before.
const CHAINS: usize = 8;

/// Normalisation of groups of channels.
pub(crate) struct GroupNormLayer {
    channels: usize,
    groups: usize,
    /// Pixels that are normalised together.
    pixels: usize,
    scale: Range<usize>,
    shift: Range<usize>,
    chunk: Range<usize>,
    /// The mean and the inverse deviation of every group of every row.
    statistics: Vec<(f32, f32)>,
    /// Gradients of scale and shift, summed over the rows.
    sums: [Vec<f64>; 2],
}

impl GroupNormLayer {
    /// Appends the layer's parameters to the layout. For at most `rows` rows of so many pixels; the groups part the
    /// channels evenly.
    pub(crate) fn new(
        name: &str,
        (channels, groups): (usize, usize),
        pixels: usize,
        rows: usize,
        layout: &mut Layout,
    ) -> Self {
        let [scale, shift, chunk] = layout.push_norm(name, channels);
        Self {
            channels,
            groups,
            pixels,
            scale,
            shift,
            chunk,
            statistics: vec![(0.0, 0.0); rows * groups],
            sums: [vec![0.0; channels], vec![0.0; channels]],
        }
    }

    /// Appends a layer to a chain: groups of so many channels; rows of so many pixels, at most so many.
    fn build(
        name: &str,
        groups: (usize, usize),
        (pixels, rows): (usize, usize),
        model: &mut ModelBuilder,
        chain: &mut Chain,
    ) {
        let norm = Self::new(name, groups, pixels, rows, &mut model.layout);
        let begin = [Initial::Constant(1.0), Initial::Constant(0.0)];
        model.initial.extend(begin);
        chain.push_same(norm);
    }

    /// Channels of a group.
    fn width(&self) -> usize {
        self.channels / self.groups
    }

    /// Numbers that are normalised together.
    fn members(&self) -> f64 {
        (self.width() * self.pixels) as f64
    }
}

/// The parts of a row that belong to one group, pixel by pixel.
fn parts(row: &[f32], channels: usize, group: Range<usize>) -> impl Iterator<Item = &[f32]> {
    row.chunks_exact(channels)
        .map(move |pixel| &pixel[group.clone()])
}

/// The sum over a group's numbers of what `each` makes of them.
#[inline(always)]
fn sum<'a>(parts: impl Iterator<Item = &'a [f32]>, each: impl Fn(f32) -> f64) -> f64 {
    let mut chains = [0.0; CHAINS];
    for part in parts {
        for piece in part.chunks(CHAINS) {
            for (chain, &x) in chains.iter_mut().zip(piece) {
                *chain += each(x);
            }
        }
    }
    chains.iter().sum()
}

impl GroupNormLayer {
    /// Numbers of a row.
    fn row_len(&self) -> usize {
        self.channels * self.pixels
    }

    /// Normalises one row, and writes down the mean and the inverse deviation of each of its groups.
    fn normalise(
        &self,
        [scale, shift]: [&[f32]; 2],
        x: &[f32],
        y: &mut [f32],
        statistics: &mut [(f32, f32)],
    ) {
        let (channels, width, members) = (self.channels, self.width(), self.members());
        for (group, statistics) in statistics.iter_mut().enumerate() {
            let group = group * width..(group + 1) * width;
            let of_group = || parts(x, channels, group.clone());
            let mean = sum(of_group(), f64::from) / members;
            let distance = |x| f64::from(x) - mean;
            let square = sum(of_group(), |x| distance(x) * distance(x)) / members;
            let inverse = 1.0 / (square + EPSILON).sqrt();
            *statistics = (mean as f32, inverse as f32);
            let (mean, inverse) = *statistics;
            let (scale, shift) = (&scale[group.clone()], &shift[group.clone()]);
            for (x, y) in of_group().zip(y.chunks_exact_mut(channels)) {
                let numbers = x.iter().zip(&mut y[group.clone()]);
                for ((x, y), (scale, shift)) in numbers.zip(scale.iter().zip(shift)) {
                    *y = (x - mean) * inverse * scale + shift;
                }
            }
        }
    }

    /// The gradient by one row.
    fn input_gradient(
        &self,
        scale: &[f32],
        x: &[f32],
        dy: &[f32],
        dx: &mut [f32],
        statistics: &[(f32, f32)],
    ) {
        let (channels, width, members) = (self.channels, self.width(), self.members());
        for (group, &(mean, inverse)) in statistics.iter().enumerate() {
            let group = group * width..(group + 1) * width;
            let normal = |x: f32| f64::from((x - mean) * inverse);
            // The means over the group of the gradient by its normalised numbers, and of that times them.
            let mut means = [0.0; 2];
            let pixels = parts(x, channels, group.clone()).zip(parts(dy, channels, group.clone()));
            for (x, dy) in pixels {
                for (j, channel) in group.clone().enumerate() {
                    let dy = f64::from(dy[j]) * f64::from(scale[channel]);
                    means[0] += dy;
                    means[1] += dy * normal(x[j]);
                }
            }
            let [plain, by_normal] = means.map(|sum| sum / members);
            let pixels = x.chunks_exact(channels).zip(dy.chunks_exact(channels));
            for ((x, dy), dx) in pixels.zip(dx.chunks_exact_mut(channels)) {
                for channel in group.clone() {
                    let dy = f64::from(dy[channel]) * f64::from(scale[channel]);
                    let slope = dy - plain - normal(x[channel]) * by_normal;
                    dx[channel] = (slope * f64::from(inverse)) as f32;
                }
            }
        }
    }

    /// Sums up the gradients of scale and shift over some rows, of channels from `first` on.
    fn sum_gradients(
        &self,
        rows: Range<usize>,
        (x, dy): (&[f32], &[f32]),
        first: usize,
        [d_scale, d_shift]: [&mut [f64]; 2],
    ) {
        let (width, row_len) = (self.width(), self.row_len());
        d_scale.fill(0.0);
        d_shift.fill(0.0);
        for row in rows {
            let numbers = row * row_len..(row + 1) * row_len;
            let statistics = &self.statistics[row * self.groups..][..self.groups];
            let pixels = x[numbers.clone()].chunks_exact(self.channels);
            for (x, dy) in pixels.zip(dy[numbers].chunks_exact(self.channels)) {
                for (j, (d_scale, d_shift)) in d_scale.iter_mut().zip(&mut *d_shift).enumerate() {
                    let channel = first + j;
                    let (mean, inverse) = statistics[channel / width];
                    let dy = f64::from(dy[channel]);
                    *d_scale += dy * f64::from((x[channel] - mean) * inverse);
                    *d_shift += dy;
                }
            }
        }
    }
}

impl Layer for GroupNormLayer {
    fn operation(&self) -> Operation {
        Operation::GroupNorm {
            channels: self.channels,
            groups: self.groups,
            pixels: self.pixels,
            epsilon: EPSILON,
            scale: self.scale.clone(),
            shift: self.shift.clone(),
        }
    }

    fn forward(&mut self, pass: Pass<'_>, state: &[f32], x: &[f32], y: &mut [f32], _: &mut [f32]) {
        let both = [&state[self.scale.clone()], &state[self.shift.clone()]];
        let (groups, row_len) = (self.groups, self.row_len());
        let rows = rows_of_a_tile(row_len);
        let mut statistics = std::mem::take(&mut self.statistics);
        let tiles = (
            pieces(x, rows * row_len),
            pieces_mut(y, rows * row_len),
            pieces_mut(&mut statistics, rows * groups),
        );
        pass.threads.each(tiles, |_, (x, y, statistics)| {
            let rows = x.chunks_exact(row_len).zip(y.chunks_exact_mut(row_len));
            for ((x, y), statistics) in rows.zip(statistics.chunks_exact_mut(groups)) {
                self.normalise(both, x, y, statistics);
            }
        });
        self.statistics = statistics;
    }

    fn backward(
        &mut self,
        pass: Pass<'_>,
        replica: &mut dyn Replica,
        x: &[f32],
        dy: &mut [f32],
        dx: Option<&mut [f32]>,
        _: &mut [f32],
    ) {
        let (groups, row_len) = (self.groups, self.row_len());
        if let Some(dx) = dx {
            let scale = &replica.state()[self.scale.clone()];
            let rows = rows_of_a_tile(row_len);
            let of_rows = rows * row_len;
            let tiles = (
                pieces(x, of_rows),
                pieces(dy, of_rows),
                pieces_mut(dx, of_rows),
                pieces(&self.statistics, rows * groups),
            );
            pass.threads.each(tiles, |_, (x, dy, dx, statistics)| {
                let rows = x.chunks_exact(row_len).zip(dy.chunks_exact(row_len));
                let rows = rows.zip(dx.chunks_exact_mut(row_len));
                for (((x, dy), dx), statistics) in rows.zip(statistics.chunks_exact(groups)) {
                    self.input_gradient(scale, x, dy, dx, statistics);
                }
            });
        }
        // A row of the batch is several rows of a layer that looks at every pixel by itself.
        let rows = x.len() / row_len;
        let parts = rows / pass.lanes.last().map_or(1, |rows| rows.end);
        let mut sums = std::mem::take(&mut self.sums);
        for (lane, rows) in pass.lanes.iter().enumerate() {
            let rows = rows.start * parts..rows.end * parts;
            let [d_scale, d_shift] = &mut sums;
            let tiles = (pieces_mut(d_scale, CHANNELS), pieces_mut(d_shift, CHANNELS));
            pass.threads.each(tiles, |tile, (d_scale, d_shift)| {
                let sums = [d_scale, d_shift];
                self.sum_gradients(rows.clone(), (x, dy), tile * CHANNELS, sums);
            });
            let handed_out = written(|_, _, gradient| {
                for (gradient, &sum) in gradient.iter_mut().zip(sums.iter().flatten()) {
                    *gradient = sum as f32;
                }
            });
            replica.gradient(lane..lane + 1, self.chunk.clone(), &handed_out);
        }
        self.sums = sums;
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.statistics[..])
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::check_layer;
    use super::*;
    use crate::threads::Threads;

    fn definition(
        channels: usize,
        groups: usize,
        pixels: usize,
        state: &[f64],
        x: &[f64],
    ) -> Vec<f64> {
        let (row, width) = (channels * pixels, channels / groups);
        let one = |at: usize| {
            let channel = at % channels;
            let group = channel / width;
            let members = (at / row * row..(at / row + 1) * row)
                .filter(|&other| other % channels / width == group);
            let members: Vec<f64> = members.map(|other| x[other]).collect();
            let n = members.len() as f64;
            let mean = members.iter().sum::<f64>() / n;
            let variance = members.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
            let normal = (x[at] - mean) / (variance + EPSILON).sqrt();
            normal * state[channel] + state[channels + channel]
        };
        (0..x.len()).map(one).collect()
    }

    #[test]
    fn it_agrees_with_finite_differences() {
        let cases = [
            (2, 1, 1, 3),
            (24, 1, 1, 2),
            (6, 3, 5, 2),
            (12, 12, 4, 1),
            (10, 2, 9, 3),
        ];
        for (channels, groups, pixels, rows) in cases {
            let mut layout = Layout::default();
            let mut layer =
                GroupNormLayer::new("gn", (channels, groups), pixels, rows, &mut layout);
            let definition =
                |state: &[f64], x: &[f64]| definition(channels, groups, pixels, state, x);
            let numbers = channels * pixels;
            check_layer(&mut layer, &layout, rows, numbers, numbers, &definition);
        }
    }

    #[test]
    fn a_row_does_not_depend_on_the_others_and_a_nan_is_not_hidden() {
        let mut layout = Layout::default();
        let mut layer = GroupNormLayer::new("ln", (3, 1), 1, 2, &mut layout);
        let state = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0];
        let (mut y, mut alone) = ([0.0; 6], [0.0; 3]);
        let x = [1.0, 2.0, 4.0, f32::NAN, 0.0, 0.0];
        let threads = Threads::default();
        let pass = Pass::evaluation(&threads);
        layer.forward(pass, &state, &x, &mut y, &mut []);
        layer.forward(pass, &state, &x[..3], &mut alone, &mut []);
        assert_eq!(y[..3], alone);
        assert!(y[3..].iter().all(|y| y.is_nan()));
    }
}
