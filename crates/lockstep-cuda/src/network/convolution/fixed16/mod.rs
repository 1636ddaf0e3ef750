//! Convolutions and dense layers in fixed point, whose sums are exact: `docs/decisions/0057-fixed16.md` has the definition.
//!
//! Both operands of a product are sliced before it: `fixed16_slices.cu` does that. `fixed16.cu` has the products of the outputs
//! and of the gradient by the input, `fixed16_weights.cu` those of the gradient by the weights. The slices of a layer's input
//! stay until the way back, where they are an operand once more.

mod matrix;
mod product;
mod slices;
mod tiles;
mod weights;

use super::super::chain::{Backward, Forward, Layer};
use super::super::divisor::check_count;
use super::super::pass::Pass;
use super::super::planner::Planner;
use super::Convolution;
use super::bias::BiasMemory;
use crate::error::CudaError;
use lockstep_nn::{Dims, Factored, PANEL, Window};
use matrix::SlicedMatrix;
use product::Totals;
use slices::{SlicedImages, before_backward, before_forward, pieces, words};
use std::ops::Range;
use weights::WeightGradient;

/// Numbers of a piece, which a thread copies at once: channels are filled up to whole ones; and of a word of a slice.
const PIECE: usize = 16;
const WORD: usize = 4;

/// Weights, as a matrix with a row for every input at every place of the kernel.
#[derive(Debug, Clone)]
struct Weights {
    inputs: usize,
    outputs: usize,
    kernel: [usize; 2],
    /// The columns that lie together.
    panel: usize,
    range: Range<usize>,
}

impl Weights {
    /// Whether inputs have so few channels that these are a word of a slice. Then a piece has several neighbouring pixels.
    fn is_narrow(&self) -> bool {
        self.inputs <= WORD && self.kernel[1] > 1
    }

    /// Words of a slice of a pixel that comes in.
    fn words_of_pixel(&self) -> usize {
        match self.is_narrow() {
            true => 1,
            false => words(self.inputs),
        }
    }

    /// Pieces of a slice that a window sees in one of its lines.
    fn pieces_of_line(&self) -> usize {
        match self.is_narrow() {
            true => self.kernel[1].div_ceil(PIECE / WORD),
            false => self.kernel[1] * pieces(self.inputs),
        }
    }
}

/// A layer in fixed point: a convolution, or a dense layer, which is one of images of a single pixel.
pub(crate) struct Fixed16Layer {
    convolution: Convolution,
    weights: Weights,
    images: SlicedImages,
    errors: SlicedImages,
    matrix: SlicedMatrix,
    totals: Totals,
    gradient: WeightGradient,
    bias: BiasMemory,
}

impl Fixed16Layer {
    /// A convolution.
    ///
    /// # Errors
    /// When there are more numbers than its kernels can count.
    pub(super) fn convolution(
        convolution: Convolution,
        planner: &mut Planner,
    ) -> Result<Self, CudaError> {
        let panel = convolution.output.channels;
        Self::new(convolution, panel, planner)
    }

    /// A dense layer.
    ///
    /// # Errors
    /// When there are more numbers than its kernels can count.
    pub(crate) fn dense(layer: &Factored, planner: &mut Planner) -> Result<Self, CudaError> {
        let convolution = Convolution {
            window: Window {
                kernel: [1, 1],
                stride: [1, 1],
                padding: [0, 0],
            },
            input: Dims::image(1, 1, layer.inputs),
            output: Dims::image(1, 1, layer.outputs),
            weight: layer.weight(),
            bias: Some(layer.bias()),
        };
        Self::new(convolution, PANEL, planner)
    }

    fn new(
        convolution: Convolution,
        panel: usize,
        planner: &mut Planner,
    ) -> Result<Self, CudaError> {
        let (input, output) = (convolution.input, convolution.output);
        for image in [input, output] {
            // Channels are filled up, so that there may be more numbers than the image has.
            let numbers = image.pixels() * WORD * words(image.channels);
            check_count("a layer in fixed16", planner.rows, numbers)?;
        }
        let lanes = planner.most_lanes();
        check_count("gradients in fixed16", lanes, convolution.weight.len())?;
        let weights = Weights {
            inputs: input.channels,
            outputs: output.channels,
            kernel: convolution.window.kernel,
            panel,
            range: convolution.weight.clone(),
        };
        let (rows, trained) = (planner.rows, planner.trained_rows);
        Ok(Self {
            images: SlicedImages::kept(input, weights.words_of_pixel(), rows, planner),
            errors: SlicedImages::borrowed(output, trained, planner),
            matrix: SlicedMatrix::new(&weights, planner),
            totals: Totals::new(&convolution, planner),
            gradient: WeightGradient::new(&convolution, &weights, planner),
            bias: BiasMemory::new(&convolution, planner),
            weights,
            convolution,
        })
    }
}

impl Layer for Fixed16Layer {
    fn is_pointwise_done(&self) -> bool {
        true
    }

    fn forward(&self, pass: &mut Pass<'_>, Forward { x, y, then }: Forward) {
        let Self {
            convolution,
            images,
            matrix,
            totals,
            ..
        } = self;
        let weights = (matrix, &self.weights);
        before_forward(pass, (images, x), weights, &self.errors);
        let layer = (convolution, &self.weights);
        product::forward(pass, layer, (images, matrix, *totals), y, then);
    }

    fn backward(&self, pass: &mut Pass<'_>, backward: Backward) {
        let Self {
            convolution,
            weights,
            images,
            errors,
            matrix,
            totals,
            ..
        } = self;
        let Backward { x, dy, dx, below } = backward;
        let (sums, bias) = self.bias.tasks(pass, convolution, dy);
        let wants_dx = dx.is_some();
        before_backward(pass, (errors, dy), (matrix, weights), wants_dx);
        if let Some(dx) = dx {
            let operands = (errors, matrix, *totals);
            product::input_gradient(pass, convolution, operands, [x, dx], below);
        }
        let layer = (convolution, weights);
        let sums = (sums, bias);
        self.gradient.push(pass, layer, [images, errors], sums);
    }
}
