//! Winograd's convolution with 3 x 3 windows that move by one pixel. `winograd.cu` has its three kernels; here is which
//! tasks each of them has in a pass.

use super::super::chain::{Backward, Forward, Layer};
use super::super::divisor::Divisor;
use super::super::pass::Pass;
use super::super::planner::Planner;
use super::super::pointwise::Pointwise;
use super::Convolution;
use super::bias::{BiasMemory, BiasSums, ImageSums};
use crate::arguments::{Pointer, arguments};
use crate::kernels::{Kernel, WINOGRAD};
use crate::launch::Launch;
use crate::memory::DeviceSlice;
use lockstep_nn::Dims;

arguments! {
    /// How tiles lie on images.
    struct Tiling {
        height: u32,
        width: u32,
        channels: Divisor,
        top: u32,
        left: u32,
        tiles: Divisor,
        across: Divisor,
        count: u32,
    }

    /// Weights to planes.
    struct WeightTask {
        from: Pointer<f32>,
        to: Pointer<f32>,
        inputs: u32,
        outputs: u32,
        groups: Divisor,
        is_turned: u32,
        blocks: u32,
    }

    /// Pixels to planes.
    struct TileTask {
        from: Pointer<f32>,
        to: Pointer<f32>,
        tiling: Tiling,
        blocks: u32,
    }

    struct WinogradBegin {
        weights: WeightTask,
        sums: ImageSums,
        pixels: TileTask,
        inputs: TileTask,
        gradients: TileTask,
    }

    /// Products of pixels and weights.
    struct PixelProducts {
        pixels: Pointer<f32>,
        weights: Pointer<f32>,
        to: Pointer<f32>,
        tiles: u32,
        inputs: u32,
        outputs: u32,
        across: Divisor,
        down: Divisor,
        blocks: u32,
    }

    /// Products of inputs and gradients.
    struct WeightProducts {
        inputs_from: Pointer<f32>,
        gradients: Pointer<f32>,
        to: Pointer<f32>,
        lane_rows: Pointer<u32>,
        tiles: u32,
        count: u32,
        inputs: u32,
        outputs: u32,
        side: u32,
        across: Divisor,
        down: Divisor,
        blocks: u32,
    }

    struct WinogradProducts {
        weights: WeightProducts,
        pixels: PixelProducts,
    }

    /// Planes to pixels.
    struct OutputTask {
        from: Pointer<f32>,
        bias: Pointer<f32>,
        to: Pointer<f32>,
        tiling: Tiling,
        pointwise: Pointwise,
        x: Pointer<f32>,
        is_backward: u32,
        blocks: u32,
    }

    /// Planes to the gradient of weights.
    struct WeightGradientTask {
        from: Pointer<f32>,
        to: Pointer<f32>,
        stride: u64,
        size: Divisor,
        lanes: u32,
        blocks: u32,
    }

    struct WinogradEnd {
        outputs: OutputTask,
        weights: WeightGradientTask,
        bias: BiasSums,
    }
}

/// Threads of a block that transforms.
const THREADS: usize = 128;

const BEGIN: Kernel<WinogradBegin> = Kernel::new(&WINOGRAD, "winograd_begin", THREADS as u32);
const PRODUCTS: Kernel<WinogradProducts> = Kernel::new(&WINOGRAD, "winograd_products", 64);
const END: Kernel<WinogradEnd> = Kernel::new(&WINOGRAD, "winograd_end", THREADS as u32);

/// Places of a tile.
const PLANES: usize = 36;

/// Rows and columns of a product that a block has are 8 times what each of its threads has.
const SIDE: usize = 8;

/// Multiprocessors of the GPUs that tiles are chosen for: an H100 or H200.
const MULTIPROCESSORS: usize = 132;

/// Images that are cut into tiles of 4 x 4 pixels.
#[derive(Debug, Clone, Copy)]
struct Tiles {
    image: Dims,
    margin: [usize; 2],
    /// From top to bottom and from left to right.
    tiles: [usize; 2],
}

impl Tiles {
    /// The tiles that cover an image.
    fn of(image: Dims) -> Self {
        Self {
            image,
            margin: [0, 0],
            tiles: [image.height.div_ceil(4), image.width.div_ceil(4)],
        }
    }

    /// The same tiles on an image that has a margin.
    fn under(self, image: Dims, margin: [usize; 2]) -> Self {
        Self {
            image,
            margin,
            ..self
        }
    }

    /// Tiles of an image.
    fn count(self) -> usize {
        self.tiles[0] * self.tiles[1]
    }

    /// Numbers of all planes of so many images.
    fn numbers(self, images: usize) -> usize {
        PLANES * images * self.count() * self.image.channels
    }

    fn tiling(self, images: usize) -> Tiling {
        let [top, left] = self.margin.map(|margin| margin as u32);
        Tiling {
            height: self.image.height as u32,
            width: self.image.width as u32,
            channels: Divisor::new(self.image.channels),
            top,
            left,
            tiles: Divisor::new(self.count()),
            across: Divisor::new(self.tiles[1]),
            count: (images * self.count()) as u32,
        }
    }

    /// Blocks that have a channel of a tile a thread.
    fn blocks(self, images: usize) -> u32 {
        (images * self.count() * self.image.channels).div_ceil(THREADS) as u32
    }

    /// Transforms what lies under the tiles to planes.
    fn task(self, images: usize, from: DeviceSlice<f32>, to: DeviceSlice<f32>) -> TileTask {
        TileTask {
            from: from.pointer(),
            to: to.pointer(),
            tiling: self.tiling(images),
            blocks: self.blocks(images),
        }
    }
}

/// What a convolution of images by weights needs while it computes.
#[derive(Debug, Clone, Copy)]
struct ProductMemory {
    weights: DeviceSlice<f32>,
    pixels: DeviceSlice<f32>,
    products: DeviceSlice<f32>,
}

impl ProductMemory {
    fn new(planner: &mut Planner, from: Tiles, to: Tiles) -> Self {
        let rows = planner.rows;
        Self {
            weights: planner.borrow(PLANES * from.image.channels * to.image.channels),
            pixels: planner.borrow(from.numbers(rows)),
            products: planner.borrow(to.numbers(rows)),
        }
    }
}

/// What a weight gradient needs while it computes.
#[derive(Debug, Clone, Copy)]
struct WeightMemory {
    inputs: DeviceSlice<f32>,
    gradients: DeviceSlice<f32>,
    products: DeviceSlice<f32>,
}

/// A convolution of images by weights, which may be turned about.
#[derive(Debug, Clone, Copy)]
struct Way {
    from: Tiles,
    to: Tiles,
    is_turned: bool,
    memory: ProductMemory,
}

impl Way {
    fn weights(&self, from: Pointer<f32>) -> WeightTask {
        let [from_channels, to_channels] = [self.from, self.to].map(|tiles| tiles.image.channels);
        let [inputs, outputs] = match self.is_turned {
            true => [to_channels, from_channels],
            false => [from_channels, to_channels],
        };
        WeightTask {
            from,
            to: self.memory.weights.pointer(),
            inputs: inputs as u32,
            outputs: outputs as u32,
            groups: Divisor::new((inputs / 16).max(1)),
            is_turned: self.is_turned.into(),
            blocks: (inputs * outputs).div_ceil(THREADS) as u32,
        }
    }

    fn products(&self, images: usize) -> PixelProducts {
        let [inputs, outputs] = [self.from, self.to].map(|tiles| tiles.image.channels);
        let tiles = images * self.to.count();
        let width = match outputs.is_multiple_of(64) {
            true => 64,
            false => 32,
        };
        let [across, down] = [outputs.div_ceil(width), tiles.div_ceil(64)];
        PixelProducts {
            pixels: self.memory.pixels.pointer(),
            weights: self.memory.weights.pointer(),
            to: self.memory.products.pointer(),
            tiles: tiles as u32,
            inputs: inputs as u32,
            outputs: outputs as u32,
            across: Divisor::new(across),
            down: Divisor::new(down),
            blocks: (PLANES * across * down) as u32,
        }
    }

    fn outputs(&self, images: usize, to: DeviceSlice<f32>, pointwise: Pointwise) -> OutputTask {
        OutputTask {
            from: self.memory.products.pointer(),
            bias: Pointer::default(),
            to: to.pointer(),
            tiling: self.to.tiling(images),
            pointwise,
            x: Pointer::default(),
            is_backward: 0,
            blocks: self.to.blocks(images),
        }
    }
}

/// A convolution of whole groups of 16 channels.
pub(super) struct WinogradLayer {
    convolution: Convolution,
    forth: Way,
    back: Way,
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
        let forth = planner.lend(|planner| Way {
            from: under,
            to: forth,
            is_turned: false,
            memory: ProductMemory::new(planner, under, forth),
        });
        let over = Tiles::of(output);
        let under_gradients = back.under(output, window.padding.map(|padding| 2 - padding));
        let rows = planner.rows;
        let products = planner.parts(rows) * PLANES * input.channels * output.channels;
        planner.lend(|planner| Self {
            forth,
            back: Way {
                from: under_gradients,
                to: back,
                is_turned: true,
                memory: ProductMemory::new(planner, under_gradients, back),
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

/// Appends the three kernels, each with as many blocks as its tasks have.
fn launch(pass: &mut Pass<'_>, begin: WinogradBegin, products: WinogradProducts, end: WinogradEnd) {
    let tiles = [begin.pixels, begin.inputs, begin.gradients];
    let tiles = tiles.iter().map(|task| task.blocks).sum::<u32>();
    let blocks = begin.sums.blocks + begin.weights.blocks + tiles;
    pass.push(Launch::new(&BEGIN, [blocks as usize, 1, 1], begin));
    let blocks = products.weights.blocks + products.pixels.blocks;
    pass.push(Launch::new(&PRODUCTS, [blocks as usize, 1, 1], products));
    let blocks = end.bias.blocks + end.weights.blocks + end.outputs.blocks;
    pass.push(Launch::new(&END, [blocks as usize, 1, 1], end));
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
