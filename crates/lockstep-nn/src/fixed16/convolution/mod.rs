//! A convolution, with its three products in fixed point.
//!
//! Images are sliced with margins, so that what a window sees is a left operand as it lies: forward ([`windows`]), and on
//! the way back, where the windows of errors are those that saw a pixel. For the gradient of the kernels windows are the
//! depth ([`kernels`]).
//!
//! Scales are those of dense layers: one for the kernels, one for the images of a lane, in an evaluation one for each
//! image.

mod axis;
mod kernels;
mod windows;

use super::grid::PixelGrid;
use super::scale::Scale;
use super::scales::{Operand, RowScales};
use crate::dims::Dims;
use crate::layers::conv_weights::{ConvWeights, bias_gradient};
use crate::layers::window::Window;
use crate::layers::{Layer, Pass, carve, carved, of_rows};
use crate::layout::Layout;
use crate::operation::{ConvolutionMethod, Operation};
use crate::replica::Replica;
use crate::threads::{SharedMut, Threads};
use axis::Axis;
use kernels::KernelGradient;
use windows::Windows;

/// A convolution whose channels are not in groups.
pub(crate) struct Fixed16Conv2d {
    shape: Shape,
    weights: ConvWeights,
    /// How images of the input lie, and how errors do.
    input: PixelGrid,
    errors: PixelGrid,
    forward: Windows,
    back: Vec<Windows>,
    gradient: KernelGradient,
    scales: RowScales,
    weight_scale: Scale,
}

/// The shapes of a convolution.
#[derive(Debug, Clone)]
struct Shape {
    window: Window,
    input: Dims,
    output: Dims,
    axes: [Axis; 2],
}

impl Shape {
    /// Numbers of the kernels.
    fn weights(&self) -> usize {
        self.window.area() * self.input.channels * self.output.channels
    }

    /// Places of an image.
    fn places(&self) -> [usize; 2] {
        self.axes.each_ref().map(|axis| axis.places)
    }

    /// How images of the input lie, at most so many.
    fn input_grid(&self, images: usize) -> PixelGrid {
        let Window {
            kernel,
            stride,
            padding,
        } = self.window;
        let below = (kernel[0] - 1) / stride[0];
        PixelGrid::new(self.input, padding, stride, self.places(), (images, below))
    }

    /// How errors lie, at most those of so many images.
    fn error_grid(&self, images: usize) -> PixelGrid {
        let lead = self.axes.each_ref().map(|axis| axis.lead);
        let classes = self.axes[0].classes.iter();
        let below = lead[0] + classes.map(|class| class.error).max().unwrap_or(0);
        PixelGrid::new(self.output, lead, [1; 2], self.places(), (images, below))
    }

    /// Places before the errors of the first image.
    fn lead(&self) -> usize {
        let [vertical, horizontal] = &self.axes;
        vertical.lead * horizontal.places + horizontal.lead
    }
}

/// Images in slices.
struct SlicedImages<'a> {
    grid: &'a PixelGrid,
    slices: [&'a [i8]; 2],
    /// The scale of each.
    scales: &'a [Scale],
}

impl Fixed16Conv2d {
    /// Appends the layer's tensors to the layout. At least one window fits the image; a pass has at most so many images,
    /// of so many lanes.
    pub(crate) fn new(
        name: &str,
        (input, output): (Dims, Dims),
        window: Window,
        bias: bool,
        (rows, lanes): (usize, usize),
        layout: &mut Layout,
    ) -> Self {
        let [height, width] = window.kernel;
        let kernels = [output.channels, input.channels, height, width];
        let shape = Shape {
            window,
            input,
            output,
            axes: Axis::both(window, input, output),
        };
        let (of_input, of_errors) = (shape.input_grid(rows), shape.error_grid(rows));
        Self {
            weights: ConvWeights::new(name, kernels, bias, layout),
            forward: Windows::forward(&shape, &of_input),
            back: Windows::back(&shape, &of_errors),
            gradient: KernelGradient::new(&shape, &of_input),
            input: of_input,
            errors: of_errors,
            shape,
            scales: RowScales::new(rows, lanes),
            weight_scale: Scale::default(),
        }
    }
}

impl Layer for Fixed16Conv2d {
    fn scratch(&self, _: &Threads, rows: usize) -> usize {
        let channels = self.shape.output.channels;
        let windows = rows * self.input.places_of_image();
        let gradient = carved(channels)
            + carved(rows * channels)
            + carved(self.shape.weights())
            + self.input.room()
            + self.gradient.scratch(windows);
        let back = self.back.iter().map(|class| carved(class.room())).max();
        let back = self.errors.room() + back.unwrap_or(0).max(gradient);
        back.max(self.input.room() + carved(self.forward.room()))
    }

    fn operation(&self) -> Operation {
        let (input, output) = (self.shape.input, self.shape.output);
        self.weights.operation(
            ConvolutionMethod::Fixed16,
            self.shape.window,
            [input, output],
        )
    }

    fn forward(
        &mut self,
        pass: Pass<'_>,
        state: &[f32],
        x: &[f32],
        y: &mut [f32],
        scratch: &mut [f32],
    ) {
        let threads = pass.threads;
        let kernels = &state[self.weights.weight.clone()];
        self.weight_scale = Scale::on(threads, kernels);
        let kernels = (kernels, self.weight_scale);
        let length = self.shape.input.len();
        let scales = self.scales.find(pass, x, length, Operand::Input);
        let (room, right) = carve(scratch, self.input.room());
        let x = SlicedImages {
            grid: &self.input,
            slices: self.input.slice(threads, x, scales, room),
            scales,
        };
        let bias = self.weights.bias.as_ref().map(|bias| &state[bias.clone()]);
        let y = SharedMut::new(y);
        self.forward.compute(threads, &x, kernels, bias, &y, right);
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
        let (threads, all_dy) = (pass.threads, &*dy);
        let Shape { output, .. } = self.shape;
        let (room, scratch) = carve(scratch, self.errors.room());
        self.scales.find(pass, all_dy, output.len(), Operand::Error);
        let [x_scales, scales] = self.scales.found(all_dy.len() / output.len());
        let dy = SlicedImages {
            grid: &self.errors,
            slices: self.errors.slice(threads, all_dy, scales, room),
            scales,
        };
        if let Some(dx) = dx {
            let kernels = &replica.state()[self.weights.weight.clone()];
            let (kernels, dx) = ((kernels, self.weight_scale), SharedMut::new(dx));
            for class in &self.back {
                class.compute(threads, &dy, kernels, None, &dx, scratch);
            }
        }
        let channels = output.channels;
        let (d_bias, scratch) = carve(scratch, channels);
        let (sums, scratch) = carve(scratch, pass.largest_lane() * channels);
        let (d_weight, scratch) = carve(scratch, self.shape.weights());
        let (room, scratch) = carve(scratch, self.input.room());
        let x = SlicedImages {
            grid: &self.input,
            slices: self.input.slice(threads, x, x_scales, room),
            scales: x_scales,
        };
        for (lane, images) in pass.lanes.iter().enumerate() {
            if self.weights.bias.is_some() {
                let dy = of_rows(all_dy, images, output.len());
                let sums = &mut sums[..images.len() * channels];
                bias_gradient(threads, dy, output, sums, d_bias);
            }
            let lead = self.shape.lead();
            self.gradient
                .compute(threads, (&x, &dy), images.clone(), lead, d_weight, scratch);
            let gradient = self.weights.gradient(d_weight, d_bias);
            let chunks = self.weights.chunks.clone();
            replica.gradient(lane..lane + 1, chunks, &gradient);
        }
    }
}
