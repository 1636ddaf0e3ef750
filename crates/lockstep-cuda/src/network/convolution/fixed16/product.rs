//! Outputs, and gradients by the input: products of sliced images and sliced weights.

use super::super::super::divisor::Divisor;
use super::super::super::pass::Pass;
use super::super::super::planner::Planner;
use super::super::super::pointwise::Pointwise;
use super::super::Convolution;
use super::matrix::SlicedMatrix;
use super::slices::{Fixed16Scale, SlicedImages, Slices, pieces};
use super::tiles::{FORWARD, FORWARD_NARROW, INPUT_GRADIENT, TileKernels, best};
use super::{PIECE, Weights};
use crate::arguments::{Pointer, arguments};
use crate::kernels::{FIXED16, Kernel};
use crate::launch::Launch;
use crate::memory::DeviceSlice;
use lockstep_nn::Dims;

arguments! {
    struct Fixed16Product {
        upper: Pointer<u8>,
        lower: Pointer<u8>,
        scales: Pointer<Fixed16Scale>,
        right_upper: Pointer<u8>,
        right_lower: Pointer<u8>,
        right_scale: Pointer<Fixed16Scale>,
        bias: Pointer<f32>,
        x: Pointer<f32>,
        to: Pointer<f32>,
        images: u32,
        height: u32,
        width: u32,
        height_to: u32,
        width_to: u32,
        columns: u32,
        kernel: [u32; 2],
        stride: [u32; 2],
        padding: [u32; 2],
        pieces: u32,
        first_piece: u32,
        end_piece: u32,
        totals: Pointer<u64>,
        totals_of_class: u64,
        is_last: u32,
        across: Divisor,
        zeroed: Pointer<u32>,
        zeros: u32,
        pointwise: Pointwise,
    }
}

/// What both products have in common.
fn product(
    pass: &Pass<'_>,
    convolution: &Convolution,
    (from, [image, to]): (&SlicedImages, [Dims; 2]),
    (right, matrix): (&Slices, &SlicedMatrix),
) -> Fixed16Product {
    let window = convolution.window;
    let numbers = |numbers: [usize; 2]| numbers.map(|number| number as u32);
    let ([upper, lower], [right_upper, right_lower]) = (from.slices.pointers(), right.pointers());
    Fixed16Product {
        upper,
        lower,
        scales: from.scales.pointer(),
        right_upper,
        right_lower,
        right_scale: matrix.scale.pointer(),
        images: pass.rows as u32,
        height: image.height as u32,
        width: image.width as u32,
        height_to: to.height as u32,
        width_to: to.width as u32,
        columns: to.channels as u32,
        kernel: numbers(window.kernel),
        stride: numbers(window.stride),
        padding: numbers(window.padding),
        pieces: pieces(image.channels) as u32,
        ..Default::default()
    }
}

/// Pieces of a depth that sums of 32 bits can hold, whatever they are.
const MOST_PIECES: usize = 65_536 / PIECE;

/// Room for the totals of products whose depth is gone through in several launches, as that of a dense layer on large images.
#[derive(Debug, Clone, Copy)]
pub(super) struct Totals(DeviceSlice<u64>);

impl Totals {
    pub(super) fn new(convolution: &Convolution, planner: &mut Planner) -> Self {
        let Convolution { input, output, .. } = convolution;
        let (forth, back) = (convolution.pixels_of(true), convolution.pixels_of(false));
        let forward = planner.rows * forth * output.channels;
        let backward = planner.trained_rows * back * input.channels;
        let needed = [(input, forward), (output, backward)]
            .into_iter()
            .filter(|(from, _)| {
                let places: usize = convolution.window.kernel.iter().product();
                places * pieces(from.channels) > MOST_PIECES
            });
        let numbers = needed.map(|(_, numbers)| numbers).max();
        Self(planner.borrow(numbers.unwrap_or(0)))
    }
}

impl Convolution {
    /// Pixels of an image of outputs; or of inputs, as many for each class of them as the largest has.
    fn pixels_of(&self, outputs: bool) -> usize {
        match outputs {
            true => self.output.pixels(),
            false => {
                let [vertical, horizontal] = self.window.stride;
                let of_class =
                    self.input.height.div_ceil(vertical) * self.input.width.div_ceil(horizontal);
                of_class * vertical * horizontal
            }
        }
    }
}

/// Appends the product: of so many pixels, and so many times.
fn push(
    pass: &mut Pass<'_>,
    (kernels, totals): (&TileKernels, Totals),
    (pixels, times): (usize, usize),
    arguments: Fixed16Product,
) {
    let size = [pixels, arguments.columns as usize];
    let Some((name, tile)) = best(kernels, size, times) else {
        return;
    };
    let places: u32 = arguments.kernel.iter().product();
    let all = (places * arguments.pieces) as usize;
    for first in (0..all).step_by(MOST_PIECES) {
        let arguments = Fixed16Product {
            across: Divisor::new(size[1].div_ceil(tile.columns)),
            first_piece: first as u32,
            end_piece: (first + MOST_PIECES).min(all) as u32,
            totals: totals.0.pointer_if_any(),
            totals_of_class: (size[0] * size[1]) as u64,
            is_last: (first + MOST_PIECES >= all).into(),
            ..arguments
        };
        let kernel = Kernel::new(&FIXED16, name, tile.threads);
        let launch = Launch::new(&kernel, [tile.count(size), 1, times], arguments);
        pass.push(launch.sharing(tile.shared()));
    }
}

/// Appends the output.
pub(super) fn forward(
    pass: &mut Pass<'_>,
    (convolution, weights): (&Convolution, &Weights),
    (images, matrix, totals): (&SlicedImages, &SlicedMatrix, Totals),
    y: DeviceSlice<f32>,
    then: Pointwise,
) {
    let Convolution {
        input,
        output,
        bias,
        ..
    } = convolution;
    let right = (&matrix.forward, matrix);
    let bias = bias.as_ref().map(|bias| pass.values(bias));
    let (zeroed, zeros) = images.largest.zeroed();
    let arguments = Fixed16Product {
        bias: bias.unwrap_or_default(),
        to: y.pointer(),
        zeroed,
        zeros,
        pointwise: then,
        ..product(pass, convolution, (images, [*input, *output]), right)
    };
    let (kernels, arguments) = match weights.is_narrow() {
        true => (
            &FORWARD_NARROW,
            Fixed16Product {
                pieces: 1,
                ..arguments
            },
        ),
        false => (&FORWARD, arguments),
    };
    let pixels = pass.rows * output.pixels();
    push(pass, (kernels, totals), (pixels, 1), arguments);
}

/// Appends the gradient by the input `x`.
pub(super) fn input_gradient(
    pass: &mut Pass<'_>,
    convolution: &Convolution,
    (errors, matrix, totals): (&SlicedImages, &SlicedMatrix, Totals),
    [x, dx]: [DeviceSlice<f32>; 2],
    below: Pointwise,
) {
    let Convolution {
        window,
        input,
        output,
        ..
    } = convolution;
    let [vertical, horizontal] = window.stride;
    let arguments = Fixed16Product {
        x: x.pointer(),
        to: dx.pointer(),
        pointwise: below,
        ..product(
            pass,
            convolution,
            (errors, [*output, *input]),
            (&matrix.backward, matrix),
        )
    };
    let classes = vertical * horizontal;
    let size = (pass.rows * convolution.pixels_of(false) / classes, classes);
    push(pass, (&INPUT_GRADIENT, totals), size, arguments);
}
