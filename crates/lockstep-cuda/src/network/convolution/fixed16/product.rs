//! Outputs, and gradients by the input: products of sliced images and sliced weights.

use super::super::super::divisor::Divisor;
use super::super::super::pass::Pass;
use super::super::super::pointwise::Pointwise;
use super::super::Convolution;
use super::slices::{Fixed16Scale, SlicedImages, SlicedMatrix, Slices, pieces};
use super::{COLUMNS, ROWS, SHARED, Weights};
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
        across: Divisor,
        zeroed: Pointer<u32>,
        zeros: u32,
        pointwise: Pointwise,
    }
}

const FORWARD: Kernel<Fixed16Product> = Kernel::new(&FIXED16, "fixed16_forward", 128);
const FORWARD_NARROW: Kernel<Fixed16Product> = Kernel::new(&FIXED16, "fixed16_forward_narrow", 128);
const INPUT_GRADIENT: Kernel<Fixed16Product> = Kernel::new(&FIXED16, "fixed16_input_gradient", 128);

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
        across: Divisor::new(to.channels.div_ceil(COLUMNS)),
        ..Default::default()
    }
}

/// Appends the product: of so many pixels, and so many times.
fn push(
    pass: &mut Pass<'_>,
    kernel: &Kernel<Fixed16Product>,
    (pixels, times): (usize, usize),
    arguments: Fixed16Product,
) {
    let blocks = pixels.div_ceil(ROWS) * (arguments.columns as usize).div_ceil(COLUMNS);
    let launch = Launch::new(kernel, [blocks, 1, times], arguments);
    pass.push(launch.sharing(SHARED));
}

/// Appends the output.
pub(super) fn forward(
    pass: &mut Pass<'_>,
    (convolution, weights): (&Convolution, &Weights),
    (images, matrix): (&SlicedImages, &SlicedMatrix),
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
    let (kernel, arguments) = match weights.is_narrow() {
        true => (
            &FORWARD_NARROW,
            Fixed16Product {
                pieces: 1,
                ..arguments
            },
        ),
        false => (&FORWARD, arguments),
    };
    push(pass, kernel, (pass.rows * output.pixels(), 1), arguments);
}

/// Appends the gradient by the input `x`.
pub(super) fn input_gradient(
    pass: &mut Pass<'_>,
    convolution: &Convolution,
    (errors, matrix): (&SlicedImages, &SlicedMatrix),
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
    // Of the largest class, which has the first pixel of every step.
    let pixels = input.height.div_ceil(vertical) * input.width.div_ceil(horizontal);
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
    let size = (pass.rows * pixels, vertical * horizontal);
    push(pass, &INPUT_GRADIENT, size, arguments);
}
