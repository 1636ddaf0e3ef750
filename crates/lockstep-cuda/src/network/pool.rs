//! Pools: the largest number or the mean of every window, or of the whole image, channel by channel.

use super::chain::{Backward, Forward, Layer};
use super::divisor::Divisor;
use super::pass::Pass;
use super::planner::Planner;
use super::pointwise::Pointwise;
use super::window::{Axis, Pixels, axes};
use crate::arguments::{Pointer, arguments};
use crate::kernels::{Kernel, POOL};
use crate::launch::Launch;
use crate::memory::DeviceSlice;
use lockstep_nn::{Dims, Window};

arguments! {
    struct Pool {
        x: Pointer<f32>,
        y: Pointer<f32>,
        dy: Pointer<f32>,
        dx: Pointer<f32>,
        winners: Pointer<u8>,
        down: Axis,
        across: Axis,
        pixels: Pixels,
        channels: u32,
        count: u32,
        share: f32,
        pointwise: Pointwise,
    }
}

/// The kernels of a pool, on the way there and on the way back: for channels that come in fours, and for any channels.
struct PoolKernels {
    forward: [Kernel<Pool>; 2],
    backward: [Kernel<Pool>; 2],
}

/// The kernels of one pool.
macro_rules! kernels {
    ($forward:literal, $backward:literal) => {
        PoolKernels {
            forward: [
                Kernel::new(&POOL, concat!($forward, "_of_fours"), 256),
                Kernel::new(&POOL, concat!($forward, "_of_ones"), 256),
            ],
            backward: [
                Kernel::new(&POOL, concat!($backward, "_of_fours"), 256),
                Kernel::new(&POOL, concat!($backward, "_of_ones"), 256),
            ],
        }
    };
}

static MAX: PoolKernels = kernels!("max_forward", "max_backward");
static MEAN: PoolKernels = kernels!("mean_forward", "mean_backward");
static IMAGE: PoolKernels = kernels!("image_forward", "image_backward");

/// A pool.
pub(crate) struct PoolLayer {
    kernels: &'static PoolKernels,
    axes: [Axis; 2],
    input: Dims,
    output: Dims,
    /// Where in its window the largest number lies, if that is asked for.
    winners: DeviceSlice<u8>,
}

impl PoolLayer {
    fn new(
        kernels: &'static PoolKernels,
        planner: &mut Planner,
        window: Window,
        input: Dims,
    ) -> Self {
        // Whoever built the network has seen that at least one window fits.
        let output = window.output(input).unwrap_or(input);
        Self {
            kernels,
            axes: axes(window, [input, output]),
            input,
            output,
            winners: planner.keep(0),
        }
    }

    /// The largest number of every window.
    pub(crate) fn max(planner: &mut Planner, window: Window, input: Dims) -> Self {
        let pool = Self::new(&MAX, planner, window, input);
        let winners = planner.keep(planner.rows * pool.output.len());
        Self { winners, ..pool }
    }

    /// The mean of every window.
    pub(crate) fn mean(planner: &mut Planner, window: Window, input: Dims) -> Self {
        Self::new(&MEAN, planner, window, input)
    }

    /// The mean of the image.
    pub(crate) fn image(planner: &mut Planner, input: Dims) -> Self {
        let window = Window {
            kernel: [input.height, input.width],
            stride: [1, 1],
            padding: [0, 0],
        };
        Self::new(&IMAGE, planner, window, input)
    }

    /// Appends the kernel that computes images of this shape.
    fn launch(&self, pass: &mut Pass<'_>, kernels: &[Kernel<Pool>; 2], computed: Dims, of: PoolOf) {
        let channels = self.input.channels;
        let (kernel, together) = match channels.is_multiple_of(4) {
            true => (&kernels[0], 4),
            false => (&kernels[1], 1),
        };
        let groups = channels / together;
        let count = pass.rows * computed.pixels() * groups;
        let [down, across] = self.axes;
        let area = (down.kernel * across.kernel) as usize;
        let arguments = Pool {
            x: of.x.pointer(),
            y: of.y.pointer(),
            dy: of.dy.pointer(),
            dx: of.dx.pointer(),
            winners: self.winners.pointer(),
            down,
            across,
            pixels: Pixels {
                groups: Divisor::new(groups),
                width: Divisor::new(computed.width),
                height: Divisor::new(computed.height),
            },
            channels: channels as u32,
            count: count as u32,
            share: 1.0 / area as f32,
            pointwise: of.pointwise,
        };
        pass.push(Launch::over(kernel, count, arguments));
    }
}

/// What a pool reads and writes in a pass. What it does not need may be anything.
struct PoolOf {
    x: DeviceSlice<f32>,
    y: DeviceSlice<f32>,
    dy: DeviceSlice<f32>,
    dx: DeviceSlice<f32>,
    pointwise: Pointwise,
}

impl Layer for PoolLayer {
    fn is_pointwise_done(&self) -> bool {
        true
    }

    fn forward(&self, pass: &mut Pass<'_>, Forward { x, y, then }: Forward) {
        let of = PoolOf {
            x,
            y,
            dy: y,
            dx: x,
            pointwise: then,
        };
        self.launch(pass, &self.kernels.forward, self.output, of);
    }

    fn backward(&self, pass: &mut Pass<'_>, Backward { x, dy, dx, below }: Backward) {
        if let Some(dx) = dx {
            let of = PoolOf {
                x,
                y: dy,
                dy,
                dx,
                pointwise: below,
            };
            self.launch(pass, &self.kernels.backward, self.input, of);
        }
    }
}
