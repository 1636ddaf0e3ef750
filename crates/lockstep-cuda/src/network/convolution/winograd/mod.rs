//! Winograd's convolution with 3 x 3 windows that move by one pixel. `winograd.cu` has its three kernels; here is which
//! tasks each of them has in a pass.

mod tasks;
mod tiled;
mod tiles;

use super::super::chain::{Backward, Forward, Layer};
use super::super::divisor::Divisor;
use super::super::pass::Pass;
use super::super::planner::Planner;
use super::Convolution;
use super::bias::BiasMemory;
use crate::memory::DeviceSlice;
use tasks::{
    OutputTask, PLANES, THREADS, WeightGradientTask, WeightProducts, WinogradBegin, WinogradEnd,
    WinogradProducts, launch,
};
use tiled::{ProductMemory, TiledConvolution};
use tiles::Tiles;

/// Rows and columns of a product that a block has are 8 times what each of its threads has.
const SIDE: usize = 8;

/// Multiprocessors of the GPUs that tiles are chosen for: an H100 or H200.
const MULTIPROCESSORS: usize = 132;

/// What a weight gradient needs while it computes.
#[derive(Debug, Clone, Copy)]
struct WeightMemory {
    inputs: DeviceSlice<f32>,
    gradients: DeviceSlice<f32>,
    products: DeviceSlice<f32>,
}

/// A convolution of whole groups of 16 channels.
pub(super) struct WinogradLayer {
    convolution: Convolution,
    forth: TiledConvolution,
    back: TiledConvolution,
    /// Tiles of the input and of the output whose products the weight gradient is.
    under: Tiles,
    over: Tiles,
    weights: WeightMemory,
    bias: BiasMemory,
}

impl WinogradLayer {
    pub(super) fn new(convolution: Convolution, planner: &mut Planner) -> Self {
        let Convolution {
            window,
            input,
            output,
            ..
        } = convolution;
        let (forth, back) = (Tiles::of(output), Tiles::of(input));
        let under = forth.under(input, window.padding);
        let forth = planner.lend(|planner| TiledConvolution {
            from: under,
            to: forth,
            is_turned: false,
            memory: ProductMemory::new(planner, planner.rows, under, forth),
        });
        let over = Tiles::of(output);
        let under_gradients = back.under(output, window.padding.map(|padding| 2 - padding));
        let rows = planner.trained_rows;
        let products = planner.parts(rows) * PLANES * input.channels * output.channels;
        planner.lend(|planner| Self {
            forth,
            back: TiledConvolution {
                from: under_gradients,
                to: back,
                is_turned: true,
                memory: ProductMemory::new(planner, rows, under_gradients, back),
            },
            under,
            over,
            weights: WeightMemory {
                inputs: planner.borrow(under.numbers(rows)),
                gradients: planner.borrow(over.numbers(rows)),
                products: planner.borrow(products),
            },
            bias: BiasMemory::new(&convolution, planner),
            convolution,
        })
    }

    /// The products of the weight gradient, and how many blocks have them.
    fn weight_products(&self, pass: &Pass<'_>) -> WeightProducts {
        let [inputs, outputs] = [self.under, self.over].map(|tiles| tiles.image.channels);
        let lanes = pass.lanes.count();
        let shape = |side: usize| [outputs, inputs].map(|channels| channels.div_ceil(SIDE * side));
        let blocks = |side| lanes * PLANES * shape(side).iter().product::<usize>();
        // As large as leaves enough blocks: what a thread reads is used more often then.
        let enough = [(8, 4 * MULTIPROCESSORS), (4, MULTIPROCESSORS)];
        let fits = |side: usize| SIDE * side <= inputs.min(outputs);
        let side = enough
            .iter()
            .find(|&&(side, enough)| fits(side) && blocks(side) >= enough);
        let side = side.map_or(2, |&(side, _)| side);
        let [across, down] = shape(side).map(Divisor::new);
        WeightProducts {
            inputs_from: self.weights.inputs.pointer(),
            gradients: self.weights.gradients.pointer(),
            to: self.weights.products.pointer(),
            lane_rows: pass.lanes.rows.pointer(),
            tiles: self.over.count() as u32,
            count: (pass.rows * self.over.count()) as u32,
            inputs: inputs as u32,
            outputs: outputs as u32,
            side: side as u32,
            across,
            down,
            blocks: blocks(side) as u32,
        }
    }

    fn weight_gradient(&self, pass: &Pass<'_>) -> WeightGradientTask {
        let size = self.under.image.channels * self.over.image.channels;
        let lanes = pass.lanes.count();
        WeightGradientTask {
            from: self.weights.products.pointer(),
            to: pass.gradient(&self.convolution.weight),
            stride: pass.stride(),
            size: Divisor::new(size),
            lanes: lanes as u32,
            blocks: (lanes * size).div_ceil(THREADS) as u32,
        }
    }
}

impl Layer for WinogradLayer {
    fn is_pointwise_done(&self) -> bool {
        true
    }

    fn forward(&self, pass: &mut Pass<'_>, Forward { x, y, then }: Forward) {
        let Self {
            convolution, forth, ..
        } = self;
        let rows = pass.rows;
        let begin = WinogradBegin {
            weights: forth.weights(pass.values(&convolution.weight)),
            pixels: forth.from.task(rows, x, forth.memory.pixels),
            ..Default::default()
        };
        let products = WinogradProducts {
            pixels: forth.products(rows),
            ..Default::default()
        };
        let bias = convolution.bias.as_ref().map(|bias| pass.values(bias));
        let end = WinogradEnd {
            outputs: OutputTask {
                bias: bias.unwrap_or_default(),
                ..forth.outputs(rows, y, then)
            },
            ..Default::default()
        };
        launch(pass, begin, products, end);
    }

    fn backward(&self, pass: &mut Pass<'_>, Backward { x, dy, dx, below }: Backward) {
        let Self {
            convolution, back, ..
        } = self;
        let rows = pass.rows;
        let (sums, bias) = self.bias.tasks(pass, convolution, dy);
        let mut begin = WinogradBegin {
            sums,
            ..Default::default()
        };
        let mut products = WinogradProducts::default();
        let mut end = WinogradEnd {
            bias,
            ..Default::default()
        };
        if let Some(dx) = dx {
            begin.weights = back.weights(pass.values(&convolution.weight));
            begin.pixels = back.from.task(rows, dy, back.memory.pixels);
            products.pixels = back.products(rows);
            end.outputs = OutputTask {
                x: x.pointer(),
                is_backward: 1,
                ..back.outputs(rows, dx, below)
            };
        }
        if pass.is_trained(&convolution.weight) {
            begin.inputs = self.under.task(rows, x, self.weights.inputs);
            begin.gradients = self.over.task(rows, dy, self.weights.gradients);
            products.weights = self.weight_products(pass);
            end.weights = self.weight_gradient(pass);
        }
        launch(pass, begin, products, end);
    }
}
