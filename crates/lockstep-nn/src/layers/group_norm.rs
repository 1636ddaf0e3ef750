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
use crate::replica::Replica;
use crate::spec::LayerKind;
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

    fn forward(&mut self, _: Pass<'_>, state: &[f32], x: &[f32], y: &mut [f32], _: &mut [f32]) {
        let (scale, shift) = (&state[self.scale.clone()], &state[self.shift.clone()]);
        let (channels, width, members) = (self.channels, self.width(), self.members());
        let row_len = channels * self.pixels;
        let rows = x.chunks_exact(row_len).zip(y.chunks_exact_mut(row_len));
        for ((x, y), statistics) in rows.zip(self.statistics.chunks_exact_mut(self.groups)) {
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
    }

    fn backward(
        &mut self,
        replica: &mut dyn Replica,
        x: &[f32],
        dy: &mut [f32],
        mut dx: Option<&mut [f32]>,
        _: &mut [f32],
    ) {
        let (channels, width, members) = (self.channels, self.width(), self.members());
        let row_len = channels * self.pixels;
        let [d_scale, d_shift] = &mut self.sums;
        d_scale.fill(0.0);
        d_shift.fill(0.0);
        let scale = &replica.state()[self.scale.clone()];
        let rows = x.chunks_exact(row_len).zip(dy.chunks_exact(row_len));
        for (row, (x, dy)) in rows.enumerate() {
            for group in 0..self.groups {
                let (mean, inverse) = self.statistics[row * self.groups + group];
                let group = group * width..(group + 1) * width;
                let normal = |x: f32| f64::from((x - mean) * inverse);
                // The means over the group of the gradient by its normalised numbers, and of that times them.
                let mut means = [0.0; 2];
                let pixels =
                    parts(x, channels, group.clone()).zip(parts(dy, channels, group.clone()));
                for (x, dy) in pixels {
                    for (j, channel) in group.clone().enumerate() {
                        let (x, dy) = (normal(x[j]), f64::from(dy[j]));
                        d_scale[channel] += dy * x;
                        d_shift[channel] += dy;
                        let dy = dy * f64::from(scale[channel]);
                        means[0] += dy;
                        means[1] += dy * x;
                    }
                }
                let [plain, by_normal] = means.map(|sum| sum / members);
                let Some(dx) = &mut dx else {
                    continue;
                };
                let dx = &mut dx[row * row_len..(row + 1) * row_len];
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
        replica.gradient(self.chunk.start, &mut |gradient| {
            let sums = self.sums.iter().flatten();
            for (gradient, &sum) in gradient.iter_mut().zip(sums) {
                *gradient = sum as f32;
            }
        });
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.statistics[..])
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::check_layer;
    use super::*;

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
        layer.forward(Pass::Evaluate, &state, &x, &mut y, &mut []);
        layer.forward(Pass::Evaluate, &state, &x[..3], &mut alone, &mut []);
        assert_eq!(y[..3], alone);
        assert!(y[3..].iter().all(|y| y.is_nan()));
    }
}
