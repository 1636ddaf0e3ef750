//! Grouped convolutions, window by window.

use super::super::chain::{Backward, Forward, Layer};
use super::super::divisor::Divisor;
use super::super::pass::Pass;
use super::super::planner::Planner;
use super::super::pointwise::Pointwise;
use super::super::window::{Axis, Pixels, axes};
use super::Convolution;
use super::bias::{BiasMemory, BiasSums, ImageSums};
use crate::arguments::{Arguments, Pointer, arguments};
use crate::kernels::{GROUPED, Kernel};
use crate::launch::Launch;
use crate::memory::DeviceSlice;
use lockstep_nn::Dims;

arguments! {
    /// The shapes of a grouped convolution.
    struct GroupedShape {
        down: Axis,
        across: Axis,
        inputs: u32,
        outputs: u32,
        group_inputs: Divisor,
        group_outputs: Divisor,
    }

    struct GroupedForward {
        x: Pointer<f32>,
        weight: Pointer<f32>,
        bias: Pointer<f32>,
        y: Pointer<f32>,
        shape: GroupedShape,
        pixels: Pixels,
        count: u32,
        then: Pointwise,
    }

    struct GroupedInputGradient {
        dy: Pointer<f32>,
        weight: Pointer<f32>,
        x: Pointer<f32>,
        dx: Pointer<f32>,
        shape: GroupedShape,
        pixels: Pixels,
        count: u32,
        below: Pointwise,
    }

    struct GroupedParts {
        sums: ImageSums,
        x: Pointer<f32>,
        dy: Pointer<f32>,
        to: Pointer<f32>,
        shape: GroupedShape,
        outputs: Divisor,
        size: u32,
        first: u32,
        blocks: Divisor,
    }

    struct GroupedSums {
        bias: BiasSums,
        parts: Pointer<f32>,
        to: Pointer<f32>,
        stride: u64,
        lane_rows: Pointer<u32>,
        first: u32,
        end: u32,
        size: Divisor,
        lanes: u32,
    }
}

/// Threads of a block.
const THREADS: usize = 128;

/// The kernel for groups of any size, and the one for groups of one channel, of which a thread has four.
struct GroupedKernels<A> {
    any: Kernel<A>,
    depthwise: Kernel<A>,
}

impl<A: Arguments> GroupedKernels<A> {
    const fn new(any: &'static str, depthwise: &'static str) -> Self {
        Self {
            any: Kernel::new(&GROUPED, any, THREADS as u32),
            depthwise: Kernel::new(&GROUPED, depthwise, THREADS as u32),
        }
    }
}

const FORWARD: GroupedKernels<GroupedForward> =
    GroupedKernels::new("grouped_forward", "depthwise_forward");
const INPUT_GRADIENT: GroupedKernels<GroupedInputGradient> =
    GroupedKernels::new("grouped_input_gradient", "depthwise_input_gradient");
const PARTS: Kernel<GroupedParts> = Kernel::new(&GROUPED, "grouped_parts", THREADS as u32);
const SUMS: Kernel<GroupedSums> = Kernel::new(&GROUPED, "grouped_sums", THREADS as u32);

/// Numbers of weight gradients of single images, which are kept until they are added up: 4 MiB.
const PART_NUMBERS: usize = 1 << 20;

/// A convolution in groups.
pub(super) struct GroupedLayer {
    convolution: Convolution,
    groups: usize,
    /// Weight gradients of some images.
    parts: DeviceSlice<f32>,
    bias: BiasMemory,
}

impl GroupedLayer {
    pub(super) fn new(convolution: Convolution, groups: usize, planner: &mut Planner) -> Self {
        let size = convolution.weight.len();
        let images = (PART_NUMBERS / size).clamp(1, planner.rows.max(1));
        Self {
            parts: planner.borrow(images * size),
            bias: BiasMemory::new(&convolution, planner),
            groups,
            convolution,
        }
    }

    fn shape(&self) -> GroupedShape {
        let Convolution {
            window,
            input,
            output,
            ..
        } = self.convolution;
        let [down, across] = axes(window, [input, output]);
        GroupedShape {
            down,
            across,
            inputs: input.channels as u32,
            outputs: output.channels as u32,
            group_inputs: Divisor::new(input.channels / self.groups),
            group_outputs: Divisor::new(output.channels / self.groups),
        }
    }

    /// Of the two kernels the one that computes images of this shape, with how many channels a thread has.
    fn kernel<'a, A>(
        &self,
        kernels: &'a GroupedKernels<A>,
        computed: Dims,
    ) -> (&'a Kernel<A>, usize) {
        let Convolution { input, output, .. } = &self.convolution;
        let is_depthwise = self.groups == input.channels && self.groups == output.channels;
        match is_depthwise && computed.channels.is_multiple_of(4) {
            true => (&kernels.depthwise, 4),
            false => (&kernels.any, 1),
        }
    }
}

/// How groups of so many channels lie on images of a shape.
fn pixels(image: Dims, together: usize) -> Pixels {
    Pixels {
        groups: Divisor::new(image.channels / together),
        width: Divisor::new(image.width),
        height: Divisor::new(image.height),
    }
}

impl Layer for GroupedLayer {
    fn is_pointwise_done(&self) -> bool {
        true
    }

    fn forward(&self, pass: &mut Pass<'_>, Forward { x, y, then }: Forward) {
        let Convolution {
            output,
            weight,
            bias,
            ..
        } = &self.convolution;
        let (kernel, together) = self.kernel(&FORWARD, *output);
        let count = pass.rows * output.len() / together;
        let bias = bias.as_ref().map(|bias| pass.values(bias));
        let arguments = GroupedForward {
            x: x.pointer(),
            weight: pass.values(weight),
            bias: bias.unwrap_or_default(),
            y: y.pointer(),
            shape: self.shape(),
            pixels: pixels(*output, together),
            count: count as u32,
            then,
        };
        pass.push(Launch::over(kernel, count, arguments));
    }

    fn backward(&self, pass: &mut Pass<'_>, Backward { x, dy, dx, below }: Backward) {
        let Convolution { input, weight, .. } = &self.convolution;
        if let Some(dx) = dx {
            let (kernel, together) = self.kernel(&INPUT_GRADIENT, *input);
            let count = pass.rows * input.len() / together;
            let arguments = GroupedInputGradient {
                dy: dy.pointer(),
                weight: pass.values(weight),
                x: x.pointer(),
                dx: dx.pointer(),
                shape: self.shape(),
                pixels: pixels(*input, together),
                count: count as u32,
                below,
            };
            pass.push(Launch::over(kernel, count, arguments));
        }
        if pass.is_trained(weight) {
            self.weight_gradient(pass, x, dy);
        }
    }
}

impl GroupedLayer {
    /// Appends the gradient by the weights: that of some images, which are then added up, and so on.
    fn weight_gradient(&self, pass: &mut Pass<'_>, x: DeviceSlice<f32>, dy: DeviceSlice<f32>) {
        let Convolution { output, weight, .. } = &self.convolution;
        let size = weight.len();
        let images = self.parts.len() / size;
        let lanes = pass.lanes.count();
        let (mut sums, mut bias) = self.bias.tasks(pass, &self.convolution, dy);
        let blocks = size.div_ceil(THREADS);
        for first in (0..pass.rows).step_by(images) {
            let images = images.min(pass.rows - first);
            let arguments = GroupedParts {
                sums,
                x: x.pointer(),
                dy: dy.pointer(),
                to: self.parts.pointer(),
                shape: self.shape(),
                outputs: Divisor::new(output.channels),
                size: size as u32,
                first: first as u32,
                blocks: Divisor::new(blocks),
            };
            let blocks = sums.blocks as usize + images * blocks;
            pass.push(Launch::new(&PARTS, [blocks, 1, 1], arguments));
            let arguments = GroupedSums {
                bias,
                parts: self.parts.pointer(),
                to: pass.gradient(weight),
                stride: pass.stride(),
                lane_rows: pass.lanes.rows.pointer(),
                first: first as u32,
                end: (first + images) as u32,
                size: Divisor::new(size),
                lanes: lanes as u32,
            };
            let blocks = bias.blocks as usize + (lanes * size).div_ceil(THREADS);
            pass.push(Launch::new(&SUMS, [blocks, 1, 1], arguments));
            (sums, bias) = Default::default();
        }
    }
}
