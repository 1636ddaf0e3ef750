//! Outputs, and gradients by the input: products of sliced images and sliced weights.

use super::super::super::divisor::Divisor;
use super::super::super::pass::Pass;
use super::super::super::pointwise::Pointwise;
use super::super::super::product::MULTIPROCESSORS;
use super::super::Convolution;
use super::Weights;
use super::slices::{Fixed16Scale, SlicedImages, SlicedMatrix, Slices, pieces};
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

/// A size of tiles, as the kernels have it.
struct Tile {
    rows: usize,
    columns: usize,
    threads: u32,
    /// Parts of the depth that are in shared memory or on their way.
    stages: usize,
    /// Columns from which on it is not half empty, and tiles that are enough to keep a large GPU busy.
    least_columns: usize,
    enough: usize,
}

impl Tile {
    /// Bytes that the threads of a block share: slices of all stages, and where rows are.
    const fn shared(&self) -> usize {
        const LINE: usize = 4 * 16;
        const OF_ROW: usize = 16 + 3 * 4;
        self.stages * 2 * (self.rows + self.columns) * LINE + self.rows * OF_ROW
    }

    fn count(&self, [rows, columns]: [usize; 2]) -> usize {
        rows.div_ceil(self.rows) * columns.div_ceil(self.columns)
    }
}

/// From the largest to the smallest: a larger one reads less for each of its sums.
const TILES: [Tile; 4] = [
    Tile {
        rows: 128,
        columns: 128,
        threads: 256,
        stages: 2,
        least_columns: 65,
        enough: 2 * MULTIPROCESSORS,
    },
    Tile {
        rows: 128,
        columns: 64,
        threads: 128,
        stages: 3,
        least_columns: 33,
        enough: MULTIPROCESSORS,
    },
    Tile {
        rows: 128,
        columns: 32,
        threads: 128,
        stages: 3,
        least_columns: 1,
        enough: MULTIPROCESSORS,
    },
    Tile {
        rows: 64,
        columns: 32,
        threads: 128,
        stages: 3,
        least_columns: 1,
        enough: 0,
    },
];

/// A kernel for each size of tiles, if there is one.
type TileKernels = [Option<&'static str>; TILES.len()];

const FORWARD: TileKernels = [
    Some("fixed16_forward_large"),
    Some("fixed16_forward_medium"),
    Some("fixed16_forward_tall"),
    Some("fixed16_forward_small"),
];
const FORWARD_NARROW: TileKernels = [
    None,
    Some("fixed16_forward_narrow_medium"),
    Some("fixed16_forward_narrow_tall"),
    None,
];
const INPUT_GRADIENT: TileKernels = [
    Some("fixed16_input_gradient_large"),
    Some("fixed16_input_gradient_medium"),
    Some("fixed16_input_gradient_tall"),
    Some("fixed16_input_gradient_small"),
];

/// The kernel for a product of so many rows and columns, so many times, and its tiles: the largest of which there are enough, or
/// else the smallest.
fn best(
    kernels: &TileKernels,
    size: [usize; 2],
    times: usize,
) -> Option<(&'static str, &'static Tile)> {
    let all = TILES.iter().zip(kernels);
    let mut fitting = all.filter_map(|(tile, &kernel)| {
        let fits = size[1] >= tile.least_columns;
        kernel.filter(|_| fits).map(|kernel| (kernel, tile))
    });
    let smallest = fitting.clone().next_back();
    fitting
        .find(|(_, tile)| tile.count(size) * times >= tile.enough)
        .or(smallest)
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

/// Appends the product: of so many pixels, and so many times.
fn push(
    pass: &mut Pass<'_>,
    kernels: &TileKernels,
    (pixels, times): (usize, usize),
    arguments: Fixed16Product,
) {
    let size = [pixels, arguments.columns as usize];
    let Some((name, tile)) = best(kernels, size, times) else {
        return;
    };
    let arguments = Fixed16Product {
        across: Divisor::new(size[1].div_ceil(tile.columns)),
        ..arguments
    };
    let kernel = Kernel::new(&FIXED16, name, tile.threads);
    let launch = Launch::new(&kernel, [tile.count(size), 1, times], arguments);
    pass.push(launch.sharing(tile.shared()));
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
    push(pass, kernels, (pass.rows * output.pixels(), 1), arguments);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_of_tiles_is_the_best_for_some_product() {
        // The conformance suite has networks with these.
        let pixels = 5 * 65 * 64;
        let sizes = [[pixels, 256], [pixels, 40], [pixels, 20], [32, 512]];
        for (number, size) in sizes.into_iter().enumerate() {
            let (name, tile) = best(&FORWARD, size, 1).unwrap();
            assert_eq!(Some(name), FORWARD[number], "{size:?}");
            assert!(tile.shared() <= crate::launch::MOST_SHARED);
        }
        let narrow = best(&FORWARD_NARROW, [8, 8], 1).unwrap().0;
        assert_eq!(Some(narrow), FORWARD_NARROW[2]);
    }
}
