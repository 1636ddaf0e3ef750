//! Convolution: every window of an image times the kernels, plus a bias.
//!
//! Kernels lie as `[height, width, in, out]`: a matrix with a row for every number of a window and a
//! column for every output channel. Its gradient is handed out in chunks of whole rows.

mod direct;
mod tiles;
mod transform;
mod winograd;

use super::conv_weights::{ConvWeights, bias_gradient};
use super::grouped::GroupedConv2d;
use super::window::Window;
use super::{Layer, Pass, carve, carved, of_rows};
use crate::build::{Site, check_groups};
use crate::dims::Dims;
use crate::error::{LayerFault, NnError};
use crate::fixed16::{Fixed16Conv2d, Precision};
use crate::graph::{Attribute, Flow, LayerGraph, window_attributes};
use crate::init::Initial;
use crate::layout::Layout;
use crate::operation::{ConvolutionMethod, Operation};
use crate::replica::Replica;
use crate::spec::{FirstWeights, LayerKind};
use crate::threads::Threads;
use direct::Direct;
use winograd::Winograd;

/// The settings of a convolution. Sizes are `[vertical, horizontal]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conv2d {
    /// Output channels.
    pub out: usize,
    /// Pixels of a window.
    pub kernel: [usize; 2],
    /// Pixels from one window to the next.
    pub stride: [usize; 2],
    /// Zeros around the image, on each side.
    pub padding: [usize; 2],
    /// How many groups the channels are parted into; each output channel sees one of them.
    pub groups: usize,
    /// Whether a number a channel is added.
    pub bias: bool,
}

impl Conv2d {
    fn window(&self) -> Window {
        Window {
            kernel: self.kernel,
            stride: self.stride,
            padding: self.padding,
        }
    }
}

impl LayerKind for Conv2d {
    fn build(&self, site: &mut Site<'_>) -> Result<(), NnError> {
        let Site { model, chain, .. } = site;
        let (name, input, window) = (site.name, chain.output(), self.window());
        if self.out == 0 {
            return Err(LayerFault::NoOutputs.of(name));
        }
        let output = Dims {
            channels: self.out,
            ..window.of_layer(name, input)?
        };
        let (groups, bias) = (self.groups, self.bias);
        check_groups(name, groups, &[input.channels, self.out])?;
        let bound = Initial::uniform_for_inputs(window.area() * (input.channels / groups));
        model.initial.push(match site.weights {
            FirstWeights::Default => bound,
            FirstWeights::KaimingNormal => Initial::normal_for_outputs(window.area() * self.out),
        });
        model.initial.extend(bias.then_some(bound));
        let (dims, layout) = ((input, output), &mut model.layout);
        match (groups, model.precision) {
            (1, Precision::Fixed16) => {
                let most = (model.rows, model.lanes);
                let layer = Fixed16Conv2d::new(name, dims, window, bias, most, layout);
                chain.push(Box::new(layer), output);
            }
            (1, Precision::F32) => {
                let plain = Conv2dLayer::new(name, dims, window, bias, layout);
                chain.push(Box::new(plain), output);
            }
            (groups, _) => {
                let grouped = GroupedConv2d::new(name, dims, window, groups, bias, layout);
                chain.push(Box::new(grouped), output);
            }
        }
        Ok(())
    }

    fn write_graph(&self, flow: Flow, graph: &mut LayerGraph<'_>) -> Flow {
        let flow = graph.as_image(flow);
        let own = graph.tensors(&["weight", "bias"]);
        let mut settings = window_attributes(self.window());
        if self.groups > 1 {
            settings.push(("group", Attribute::Int(self.groups as i64)));
        }
        Flow {
            value: graph.apply("Conv", graph.name, &flow.value, &own, &settings),
            dims: graph.output,
            ..flow
        }
    }

    fn torch_module(&self) -> String {
        let bias = if self.bias { "True" } else { "False" };
        format!(
            "nn.LazyConv2d({}, {}, groups={}, bias={bias})",
            self.out,
            self.window().in_python(),
            self.groups,
        )
    }

    fn sample() -> (Dims, Self) {
        let input = Dims::image(5, 4, 3);
        let layer = Self {
            out: 4,
            kernel: [3, 2],
            stride: [2, 1],
            padding: [1, 0],
            groups: 1,
            bias: true,
        };
        (input, layer)
    }
}

/// How the products are computed, chosen by the shapes alone: lanes of any size give the same bits.
enum Method {
    Direct(Direct),
    Winograd(Winograd),
}

impl Method {
    fn new(input: Dims, output: Dims, window: Window) -> Self {
        match Winograd::suits(input, output, window) {
            true => Self::Winograd(Winograd::new(input, output, window.padding)),
            false => Self::Direct(Direct::new(input, output, window)),
        }
    }
}

/// Whether a convolution of these shapes is computed by Winograd's method.
#[cfg(test)]
pub(crate) fn is_winograds(input: Dims, output: Dims, window: Window) -> bool {
    Winograd::suits(input, output, window)
}

/// A convolution.
pub(crate) struct Conv2dLayer {
    method: Method,
    window: Window,
    input: Dims,
    output: Dims,
    weights: ConvWeights,
}

impl Conv2dLayer {
    /// Appends the layer's tensors to the layout. At least one window fits the image.
    pub(crate) fn new(
        name: &str,
        (input, output): (Dims, Dims),
        window: Window,
        bias: bool,
        layout: &mut Layout,
    ) -> Self {
        let [height, width] = window.kernel;
        let kernels = [output.channels, input.channels, height, width];
        Self {
            method: Method::new(input, output, window),
            window,
            input,
            output,
            weights: ConvWeights::new(name, kernels, bias, layout),
        }
    }
}

impl Layer for Conv2dLayer {
    fn scratch(&self, threads: &Threads, rows: usize) -> usize {
        let products = match &self.method {
            Method::Direct(direct) => direct.scratch(threads, rows),
            Method::Winograd(winograd) => winograd.scratch(threads, rows),
        };
        let channels = self.output.channels;
        carved(channels) + carved(rows * channels) + products
    }

    fn operation(&self) -> Operation {
        let method = match self.method {
            Method::Direct(_) => ConvolutionMethod::Direct,
            Method::Winograd(_) => ConvolutionMethod::Winograd,
        };
        self.weights
            .operation(method, self.window, [self.input, self.output])
    }

    fn forward(
        &mut self,
        pass: Pass<'_>,
        state: &[f32],
        x: &[f32],
        y: &mut [f32],
        scratch: &mut [f32],
    ) {
        let bias = self.weights.bias.as_ref().map(|bias| &state[bias.clone()]);
        let weight = &state[self.weights.weight.clone()];
        match &self.method {
            Method::Direct(direct) => direct.forward(pass.threads, weight, bias, x, y, scratch),
            Method::Winograd(winograd) => {
                winograd.forward(pass.threads, weight, bias, x, y, scratch);
            }
        }
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
        let (threads, channels) = (pass.threads, self.output.channels);
        if let Some(dx) = dx {
            let weight = &replica.state()[self.weights.weight.clone()];
            match &self.method {
                Method::Direct(direct) => direct.input_gradient(threads, weight, dy, dx, scratch),
                Method::Winograd(winograd) => {
                    winograd.input_gradient(threads, weight, dy, dx, scratch);
                }
            }
        }
        let (d_bias, scratch) = carve(scratch, channels);
        let (images, scratch) = carve(scratch, pass.largest_lane() * channels);
        for (lane, rows) in pass.lanes.iter().enumerate() {
            let x = of_rows(x, rows, self.input.len());
            let dy = of_rows(dy, rows, self.output.len());
            if self.weights.bias.is_some() {
                let images = &mut images[..rows.len() * channels];
                bias_gradient(threads, dy, self.output, images, d_bias);
            }
            let d_weight = match &self.method {
                Method::Direct(direct) => direct.weight_gradient(threads, x, dy, scratch),
                Method::Winograd(winograd) => winograd.weight_gradient(threads, x, dy, scratch),
            };
            let chunks = self.weights.chunks.clone();
            let gradient = self.weights.gradient(d_weight, d_bias);
            replica.gradient(lane..lane + 1, chunks, &gradient);
        }
    }
}

#[cfg(test)]
mod tests;
