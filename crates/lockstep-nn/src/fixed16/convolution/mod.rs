//! A convolution, with its three products in fixed point.
//!
//! Where windows move by one pixel, images are sliced with margins, and what a window sees is a left operand as it lies
//! ([`on_grid`]). Elsewhere it is gathered ([`gathered`]). Both give the same sums, as they are exact.
//!
//! Scales are those of dense layers: one for the kernels, one for the images of a lane, in an evaluation one for each
//! image.

mod gathered;
mod on_grid;

use super::block::{COLUMNS, DEPTH, ROWS};
use super::cast::words_mut;
use super::right::{Matrix, pack, right_room};
use super::scale::Scale;
use super::scales::{Operand, RowScales};
use crate::dims::Dims;
use crate::layers::conv_weights::{ConvWeights, bias_gradient};
use crate::layers::window::Window;
use crate::layers::{Layer, Pass, carve, carved, of_rows};
use crate::layout::Layout;
use crate::operation::{ConvolutionMethod, Operation};
use crate::replica::Replica;
use crate::threads::{Threads, pieces_mut};
use gathered::Gathered;
use on_grid::OnGrid;

/// Bytes of the errors of the pixels that are multiplied together for the kernels' gradient: they stay in the
/// second-level cache while all rows go by. In tests there are fewer, so that small images need several turns.
const ERRORS: usize = if cfg!(test) { 16 } else { 768 } * 1024;

/// Blocks of rows of a group of 64.
const BLOCKS_OF_ROWS: usize = DEPTH / ROWS;

/// A convolution whose channels are not in groups.
pub(crate) struct Fixed16Conv2d {
    shape: Shape,
    weights: ConvWeights,
    gathered: Gathered,
    /// Where windows move by one pixel.
    on_grid: Option<OnGrid>,
    scales: RowScales,
    weight_scale: Scale,
}

/// The shapes of a convolution.
#[derive(Debug, Clone, Copy)]
struct Shape {
    window: Window,
    input: Dims,
    output: Dims,
}

impl Shape {
    /// Rows of the kernels' matrix.
    fn depth(self) -> usize {
        self.window.area() * self.input.channels
    }

    /// Numbers of the kernels.
    fn weights(self) -> usize {
        self.depth() * self.output.channels
    }

    /// Places whose errors are multiplied together, of so many.
    fn places_at_once(self, places: usize) -> usize {
        let parts = places.div_ceil(self.most_places_at_once());
        places.div_ceil(parts.max(1)).next_multiple_of(DEPTH)
    }

    /// The most that they are.
    fn most_places_at_once(self) -> usize {
        (ERRORS / (2 * self.output.channels))
            .max(DEPTH)
            .next_multiple_of(DEPTH)
    }
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
        };
        Self {
            shape,
            weights: ConvWeights::new(name, kernels, bias, layout),
            gathered: Gathered::new(shape),
            on_grid: OnGrid::new(shape),
            scales: RowScales::new(rows, lanes),
            weight_scale: Scale::default(),
        }
    }
}

/// Packs all columns of a right operand.
fn pack_all(threads: &Threads, matrix: Matrix<'_>, by: f32, to: &mut [f32]) {
    let pairs = pieces_mut(words_mut(to), right_room(matrix.rows, COLUMNS));
    threads.each(pairs, |pair, to| {
        pack(matrix.columns(pair * COLUMNS, COLUMNS), by, to);
    });
}

impl Layer for Fixed16Conv2d {
    fn scratch(&self, threads: &Threads, rows: usize) -> usize {
        let channels = self.shape.output.channels;
        let (passes, gradient) = match &self.on_grid {
            Some(on_grid) => (on_grid.scratch(rows), on_grid.gradient_scratch(rows)),
            None => (self.gathered.scratch(threads, rows), None),
        };
        let gradient = gradient.unwrap_or(self.gathered.gradient_scratch(threads, rows));
        let own = carved(channels) + carved(rows * channels) + carved(self.shape.weights());
        passes.max(own + gradient)
    }

    fn operation(&self) -> Operation {
        let Shape {
            window,
            input,
            output,
        } = self.shape;
        self.weights
            .operation(ConvolutionMethod::Direct, window, [input, output])
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
        let scales = self
            .scales
            .find(pass, x, self.shape.input.len(), Operand::Input);
        let bias = self.weights.bias.as_ref().map(|bias| &state[bias.clone()]);
        match &self.on_grid {
            Some(on_grid) => on_grid.forward(threads, kernels, bias, (x, scales), y, scratch),
            None => (self.gathered).forward(threads, kernels, bias, (x, scales), y, scratch),
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
        let (threads, dy) = (pass.threads, &*dy);
        let Shape { input, output, .. } = self.shape;
        let scales = self.scales.find(pass, dy, output.len(), Operand::Error);
        if let Some(dx) = dx {
            let kernels = &replica.state()[self.weights.weight.clone()];
            let (kernels, dy) = ((kernels, self.weight_scale), (dy, scales));
            match &self.on_grid {
                Some(on_grid) => on_grid.input_gradient(threads, kernels, dy, dx, scratch),
                None => self
                    .gathered
                    .input_gradient(threads, kernels, dy, dx, scratch),
            }
        }
        let channels = output.channels;
        let (d_bias, scratch) = carve(scratch, channels);
        let (sums, scratch) = carve(scratch, pass.largest_lane() * channels);
        let (d_weight, scratch) = carve(scratch, self.shape.weights());
        let turns = self.on_grid.as_ref().filter(|on_grid| on_grid.turns());
        for (lane, images) in pass.lanes.iter().enumerate() {
            let scales = self.scales.of_lane(lane);
            let (x, dy) = (
                of_rows(x, images, input.len()),
                of_rows(dy, images, output.len()),
            );
            if self.weights.bias.is_some() {
                let sums = &mut sums[..images.len() * channels];
                bias_gradient(threads, dy, output, sums, d_bias);
            }
            match turns {
                Some(on_grid) => {
                    on_grid.weight_gradient(threads, (x, dy), scales, d_weight, scratch)
                }
                None => {
                    (self.gathered).weight_gradient(threads, (x, dy), scales, d_weight, scratch)
                }
            }
            let gradient = self.weights.gradient(d_weight, d_bias);
            let chunks = self.weights.chunks.clone();
            replica.gradient(lane..lane + 1, chunks, &gradient);
        }
    }
}
