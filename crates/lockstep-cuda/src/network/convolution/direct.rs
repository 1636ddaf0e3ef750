//! Convolutions with any windows, window by window. `direct.cu` has the kernels: of the outputs, of the gradient by the
//! input, and of the gradient by the weights in groups of images, with what comes before and after these two.

use super::super::chain::{Backward, Forward, Layer};
use super::super::divisor::Divisor;
use super::super::pass::Pass;
use super::super::planner::Planner;
use super::super::pointwise::Pointwise;
use super::Convolution;
use super::bias::{BiasMemory, BiasSums, ImageSums};
use crate::arguments::{Arguments, Pointer, arguments};
use crate::kernels::{DIRECT, Kernel};
use crate::launch::Launch;
use crate::memory::DeviceSlice;

arguments! {
    /// An image that comes in.
    struct Image {
        height: u32,
        width: u32,
        channels: Divisor,
    }

    /// The windows over it, and the image that comes out.
    struct Windows {
        kernel: [u32; 2],
        stride: [u32; 2],
        padding: [u32; 2],
        kernel_width: Divisor,
        area: u32,
        width: Divisor,
        pixels: Divisor,
        channels: u32,
    }

    struct DirectForward {
        x: Pointer<f32>,
        weight: Pointer<f32>,
        bias: Pointer<f32>,
        y: Pointer<f32>,
        image: Image,
        windows: Windows,
        pixels: u32,
        fours_of_input: u32,
        fours_of_weight: u32,
        across: Divisor,
        then: Pointwise,
    }

    struct DirectInputGradient {
        dy: Pointer<f32>,
        weight: Pointer<f32>,
        x: Pointer<f32>,
        dx: Pointer<f32>,
        image: Image,
        windows: Windows,
        height: u32,
        images: u32,
        fours_of_gradient: u32,
        fours_of_weight: u32,
        across: Divisor,
        below: Pointwise,
    }

    struct DirectWeightGradient {
        x: Pointer<f32>,
        dy: Pointer<f32>,
        to: Pointer<f32>,
        lane_stride: u64,
        group_stride: u64,
        lane_rows: Pointer<u32>,
        group: u32,
        image: Image,
        windows: Windows,
        fours_of_input: u32,
        fours_of_gradient: u32,
        across: Divisor,
    }

    /// Weights with inputs and outputs exchanged.
    struct TurnTask {
        from: Pointer<f32>,
        to: Pointer<f32>,
        inputs: u32,
        outputs: u32,
        across: Divisor,
        down: Divisor,
        blocks: u32,
    }

    struct DirectBegin {
        sums: ImageSums,
        weights: TurnTask,
    }

    /// The groups of every lane.
    struct GroupSums {
        from: Pointer<f32>,
        to: Pointer<f32>,
        stride: u64,
        lane_rows: Pointer<u32>,
        group: u32,
        groups: u32,
        size: Divisor,
        lanes: u32,
        blocks: u32,
    }

    struct DirectEnd {
        bias: BiasSums,
        weights: GroupSums,
    }
}

/// Threads of a block that multiplies, and of one that does something else.
const MULTIPLYING: u32 = 64;
const THREADS: usize = 128;

/// The kernel of a product whose tiles are large, and that of one whose tiles are small, with rows and columns of a tile.
struct TileKernels<A> {
    large: (Kernel<A>, [usize; 2]),
    small: (Kernel<A>, [usize; 2]),
}

impl<A: Arguments + 'static> TileKernels<A> {
    const fn new(large: &'static str, small: (&'static str, [usize; 2])) -> Self {
        Self {
            large: (Kernel::new(&DIRECT, large, MULTIPLYING), [64, 64]),
            small: (Kernel::new(&DIRECT, small.0, MULTIPLYING), small.1),
        }
    }

    /// A kernel, and the blocks of a product of so many rows and columns, down and across.
    fn of(&self, is_large: bool, [rows, columns]: [usize; 2]) -> (&Kernel<A>, [usize; 2]) {
        let (kernel, tile) = match is_large {
            true => &self.large,
            false => &self.small,
        };
        (kernel, [rows.div_ceil(tile[0]), columns.div_ceil(tile[1])])
    }
}

const FORWARD: TileKernels<DirectForward> =
    TileKernels::new("direct_forward_wide", ("direct_forward_narrow", [64, 32]));
const INPUT_GRADIENT: TileKernels<DirectInputGradient> = TileKernels::new(
    "direct_input_gradient_wide",
    ("direct_input_gradient_narrow", [64, 32]),
);
const WEIGHT_GRADIENT: TileKernels<DirectWeightGradient> = TileKernels::new(
    "direct_weight_gradient_large",
    ("direct_weight_gradient_small", [32, 32]),
);
const BEGIN: Kernel<DirectBegin> = Kernel::new(&DIRECT, "direct_begin", THREADS as u32);
const END: Kernel<DirectEnd> = Kernel::new(&DIRECT, "direct_end", THREADS as u32);

/// Columns above which a tile is wide.
const NARROW: usize = 32;

/// Blocks of large tiles that are enough to keep a large GPU busy.
const ENOUGH_BLOCKS: usize = 264;

/// Pixels of a group of images, about, whose weight gradient is one chain: as lockstep-nn has it.
const GROUP_PIXELS: usize = 1024;

/// A convolution with any windows.
pub(super) struct DirectLayer {
    convolution: Convolution,
    /// The weights with inputs and outputs exchanged.
    turned: DeviceSlice<f32>,
    /// The weight gradient of every group of images of every lane.
    groups: DeviceSlice<f32>,
    bias: BiasMemory,
}

impl DirectLayer {
    pub(super) fn new(convolution: Convolution, planner: &mut Planner) -> Self {
        let size = convolution.weight.len();
        let groups = planner.parts(group(&convolution));
        Self {
            turned: planner.borrow(size),
            groups: planner.borrow(groups * size),
            bias: BiasMemory::new(&convolution, planner),
            convolution,
        }
    }

    fn image(&self) -> Image {
        let input = self.convolution.input;
        Image {
            height: input.height as u32,
            width: input.width as u32,
            channels: Divisor::new(input.channels),
        }
    }

    fn windows(&self) -> Windows {
        let Convolution { window, output, .. } = &self.convolution;
        let numbers = |numbers: [usize; 2]| numbers.map(|number| number as u32);
        Windows {
            kernel: numbers(window.kernel),
            stride: numbers(window.stride),
            padding: numbers(window.padding),
            kernel_width: Divisor::new(window.kernel[1]),
            area: (window.kernel[0] * window.kernel[1]) as u32,
            width: Divisor::new(output.width),
            pixels: Divisor::new(output.pixels()),
            channels: output.channels as u32,
        }
    }

    fn input_gradient(&self, pass: &mut Pass<'_>, backward: &Backward, dx: DeviceSlice<f32>) {
        let Convolution {
            window,
            input,
            output,
            ..
        } = &self.convolution;
        let [vertical, horizontal] = window.stride;
        // Of the largest class, which has the first pixel of every step.
        let pixels = input.height.div_ceil(vertical) * input.width.div_ceil(horizontal);
        let shape = [pass.rows * pixels, input.channels];
        let (kernel, [down, across]) = INPUT_GRADIENT.of(input.channels > NARROW, shape);
        let arguments = DirectInputGradient {
            dy: backward.dy.pointer(),
            weight: self.turned.pointer(),
            x: backward.x.pointer(),
            dx: dx.pointer(),
            image: self.image(),
            windows: self.windows(),
            height: output.height as u32,
            images: pass.rows as u32,
            fours_of_gradient: in_fours(output.channels),
            fours_of_weight: in_fours(input.channels),
            across: Divisor::new(across),
            below: backward.below,
        };
        let blocks = [down * across, 1, vertical * horizontal];
        pass.push(Launch::new(kernel, blocks, arguments));
    }

    /// Appends the gradient by the weights. Returns how it is added up, if it is in groups.
    fn weight_gradient(&self, pass: &mut Pass<'_>, backward: &Backward) -> Option<GroupSums> {
        let Convolution {
            input,
            output,
            weight,
            ..
        } = &self.convolution;
        let size = weight.len();
        let group = group(&self.convolution);
        let lanes = pass.lanes.count();
        let groups = pass.lanes.most.div_ceil(group);
        let shape = [size / output.channels, output.channels];
        let large = WEIGHT_GRADIENT.of(true, shape).1;
        let is_large = large[0] * large[1] * groups * lanes >= ENOUGH_BLOCKS;
        let (kernel, [down, across]) = WEIGHT_GRADIENT.of(is_large, shape);
        let gradient = pass.gradient(weight);
        let (to, lane_stride) = match groups {
            1 => (gradient, pass.stride()),
            _ => (self.groups.pointer(), (groups * size) as u64),
        };
        let arguments = DirectWeightGradient {
            x: backward.x.pointer(),
            dy: backward.dy.pointer(),
            to,
            lane_stride,
            group_stride: size as u64,
            lane_rows: pass.lanes.rows.pointer(),
            group: group as u32,
            image: self.image(),
            windows: self.windows(),
            fours_of_input: in_fours(input.channels),
            fours_of_gradient: in_fours(output.channels),
            across: Divisor::new(across),
        };
        let blocks = [down * across, groups, lanes];
        pass.push(Launch::new(kernel, blocks, arguments));
        (groups > 1).then(|| GroupSums {
            from: self.groups.pointer(),
            to: gradient,
            stride: pass.stride(),
            lane_rows: pass.lanes.rows.pointer(),
            group: group as u32,
            groups: groups as u32,
            size: Divisor::new(size),
            lanes: lanes as u32,
            blocks: (lanes * size).div_ceil(THREADS) as u32,
        })
    }
}

/// Images of a group.
fn group(convolution: &Convolution) -> usize {
    (GROUP_PIXELS / convolution.output.pixels()).max(1)
}

/// Whether lines of so many numbers are copied by fours.
fn in_fours(numbers: usize) -> u32 {
    numbers.is_multiple_of(4).into()
}

impl Layer for DirectLayer {
    fn is_pointwise_done(&self) -> bool {
        true
    }

    fn forward(&self, pass: &mut Pass<'_>, Forward { x, y, then }: Forward) {
        let Convolution {
            input,
            output,
            weight,
            bias,
            ..
        } = &self.convolution;
        let pixels = pass.rows * output.pixels();
        let (kernel, [down, across]) =
            FORWARD.of(output.channels > NARROW, [pixels, output.channels]);
        let is_aligned = weight.start.is_multiple_of(4);
        let bias = bias.as_ref().map(|bias| pass.values(bias));
        let arguments = DirectForward {
            x: x.pointer(),
            weight: pass.values(weight),
            bias: bias.unwrap_or_default(),
            y: y.pointer(),
            image: self.image(),
            windows: self.windows(),
            pixels: pixels as u32,
            fours_of_input: in_fours(input.channels),
            fours_of_weight: in_fours(output.channels) * u32::from(is_aligned),
            across: Divisor::new(across),
            then,
        };
        pass.push(Launch::new(kernel, [down * across, 1, 1], arguments));
    }

    fn backward(&self, pass: &mut Pass<'_>, backward: Backward) {
        let Convolution {
            window,
            input,
            output,
            weight,
            ..
        } = &self.convolution;
        let (sums, bias) = self.bias.tasks(pass, &self.convolution, backward.dy);
        let [across, down] = [input.channels.div_ceil(16), output.channels.div_ceil(8)];
        let turn = backward.dx.map(|_| TurnTask {
            from: pass.values(weight),
            to: self.turned.pointer(),
            inputs: input.channels as u32,
            outputs: output.channels as u32,
            across: Divisor::new(across),
            down: Divisor::new(down),
            blocks: (across * down * window.kernel[0] * window.kernel[1]) as u32,
        });
        let begin = DirectBegin {
            sums,
            weights: turn.unwrap_or_default(),
        };
        let blocks = begin.sums.blocks + begin.weights.blocks;
        push(pass, &BEGIN, blocks, begin);
        if let Some(dx) = backward.dx {
            self.input_gradient(pass, &backward, dx);
        }
        let groups = match pass.is_trained(weight) {
            true => self.weight_gradient(pass, &backward),
            false => None,
        };
        let end = DirectEnd {
            bias,
            weights: groups.unwrap_or_default(),
        };
        let blocks = end.bias.blocks + end.weights.blocks;
        push(pass, &END, blocks, end);
    }
}

/// Appends a kernel, unless it has nothing to do.
fn push<A: Arguments + 'static>(
    pass: &mut Pass<'_>,
    kernel: &Kernel<A>,
    blocks: u32,
    arguments: A,
) {
    if blocks > 0 {
        pass.push(Launch::new(kernel, [blocks as usize, 1, 1], arguments));
    }
}
