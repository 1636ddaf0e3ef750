//! EfficientNet-Lite without its classifier, as lockstep-nn computes it.

use super::BunchPlace;
use super::place::Placer;
use super::product::{Finish, Product};
use crate::arguments::{Pointer, arguments};
use crate::error::CudaError;
use crate::kernels::{Kernel, LITE};
use crate::launch::Launch;
use crate::memory::DeviceSlice;
use crate::network::{Divisor, check_count};
use lockstep_nn::encoder::{LiteBlockParts, LiteParts, WindowParts};

arguments! {
    /// How windows lie on a picture that has been widened by a margin.
    struct LiteWindows {
        input: u32,
        output: Divisor,
        tiles: Divisor,
        margin: u32,
        channels: u32,
        groups: Divisor,
        count: u32,
    }

    struct LiteConvolution {
        x: Pointer<f32>,
        weight: Pointer<f32>,
        bias: Pointer<f32>,
        y: Pointer<f32>,
        windows: LiteWindows,
    }

    struct LitePool {
        x: Pointer<f32>,
        y: Pointer<f32>,
        features: Divisor,
        pixels: u32,
        share: f32,
        count: u32,
    }
}

/// Threads of a block, and what each of them has: neighbouring pixels, and channels.
const THREADS: usize = 128;
const PIXELS: usize = 4;
const CHANNELS: usize = 4;

const fn convolution(name: &'static str) -> Kernel<LiteConvolution> {
    Kernel::new(&LITE, name, THREADS as u32)
}

const STEM: Kernel<LiteConvolution> = convolution("lite_stem");
const DEPTHWISE: [(usize, usize, Kernel<LiteConvolution>); 4] = [
    (3, 1, convolution("lite_depthwise_3_1")),
    (3, 2, convolution("lite_depthwise_3_2")),
    (5, 1, convolution("lite_depthwise_5_1")),
    (5, 2, convolution("lite_depthwise_5_2")),
];
const POOL: Kernel<LitePool> = Kernel::new(&LITE, "lite_pool", THREADS as u32);

/// A convolution of windows on square pictures.
struct Windows {
    kernel: Kernel<LiteConvolution>,
    weight: DeviceSlice<f32>,
    bias: DeviceSlice<f32>,
    /// Pixels of a side of what comes in, and of what goes out.
    sides: [usize; 2],
    margin: usize,
}

impl Windows {
    fn new(
        kernel: Kernel<LiteConvolution>,
        parts: &WindowParts,
        (sides, margin): ([usize; 2], usize),
        placer: &mut Placer<'_>,
    ) -> Result<Self, CudaError> {
        let channels = parts.bias.len();
        if !channels.is_multiple_of(CHANNELS) {
            return Err(CudaError::Unsupported {
                what: format!("a convolution of {channels} channels, each by itself,"),
            });
        }
        Ok(Self {
            kernel,
            weight: placer.numbers(&parts.weight)?,
            bias: placer.numbers(&parts.bias)?,
            sides,
            margin,
        })
    }

    /// Numbers of a picture that goes out.
    fn output(&self) -> usize {
        self.sides[1] * self.sides[1] * self.bias.len()
    }

    fn launch(&self, pictures: usize, x: DeviceSlice<f32>, y: DeviceSlice<f32>) -> Launch {
        let [input, output] = self.sides;
        let (tiles, groups) = (output.div_ceil(PIXELS), self.bias.len() / CHANNELS);
        let count = pictures * output * tiles * groups;
        let arguments = LiteConvolution {
            x: x.pointer(),
            weight: self.weight.pointer(),
            bias: self.bias.pointer(),
            y: y.pointer(),
            windows: LiteWindows {
                input: input as u32,
                output: Divisor::new(output),
                tiles: Divisor::new(tiles),
                margin: self.margin as u32,
                channels: self.bias.len() as u32,
                groups: Divisor::new(groups),
                count: count as u32,
            },
        };
        Launch::new(&self.kernel, [count.div_ceil(THREADS), 1, 1], arguments)
    }
}

/// An inverted bottleneck.
struct Bottleneck {
    expand: Option<Product>,
    depthwise: Windows,
    project: Product,
    /// Whether the input is added to the output.
    skip: bool,
}

impl Bottleneck {
    fn new(
        parts: &LiteBlockParts,
        side: usize,
        placer: &mut Placer<'_>,
    ) -> Result<Self, CudaError> {
        let shape = parts.shape.depthwise;
        let known = DEPTHWISE.into_iter();
        let mut known =
            known.filter(|&(kernel, stride, _)| [kernel, stride] == [shape.kernel, shape.stride]);
        let Some((_, _, kernel)) = known.next() else {
            return Err(CudaError::Unsupported {
                what: format!(
                    "a convolution of each channel by itself with windows of {}, {} apart,",
                    shape.kernel, shape.stride
                ),
            });
        };
        let sides = [side, side.div_ceil(shape.stride)];
        let expand = parts.expand.as_ref();
        Ok(Self {
            expand: expand
                .map(|expand| Product::new(expand, placer))
                .transpose()?,
            depthwise: Windows::new(kernel, &parts.depthwise, (sides, shape.margin[0]), placer)?,
            project: Product::new(&parts.project, placer)?,
            skip: parts.shape.skip,
        })
    }

    /// Numbers of a picture: widened, convolved, and narrowed.
    fn sizes(&self) -> [usize; 3] {
        let [input, output] = self.depthwise.sides.map(|side| side * side);
        let widened = self.expand.as_ref();
        [
            widened.map_or(0, |expand| input * expand.outputs),
            self.depthwise.output(),
            output * self.project.outputs,
        ]
    }
}

/// Where its numbers lie.
pub(super) struct LitePlan {
    stem: Windows,
    blocks: Vec<Bottleneck>,
    head: Product,
    /// Pixels of a picture that the head sees.
    pixels: usize,
    /// What goes in and out of a block; they change places.
    flow: [DeviceSlice<f32>; 2],
    /// What is inside of a block: widened, and convolved.
    inner: [DeviceSlice<f32>; 2],
}

impl LitePlan {
    pub(super) fn new(
        parts: &LiteParts,
        rows: usize,
        placer: &mut Placer<'_>,
    ) -> Result<Self, CudaError> {
        let LiteParts { side, .. } = *parts;
        let half = side.div_ceil(parts.stem_shape.stride);
        let place = ([side, half], parts.stem_shape.margin[0]);
        let stem = Windows::new(STEM, &parts.stem, place, placer)?;
        let (mut side, mut blocks) = (half, Vec::new());
        for block in &parts.blocks {
            let block = Bottleneck::new(block, side, placer)?;
            side = block.depthwise.sides[1];
            blocks.push(block);
        }
        let head = Product::new(&parts.head, placer)?;
        let features = side * side * head.outputs;
        let most = |part: usize| {
            let sizes = blocks.iter().map(|block| block.sizes()[part]);
            sizes.max().unwrap_or(0)
        };
        let sizes = [most(0).max(features), most(1), most(2).max(stem.output())];
        let largest = sizes
            .into_iter()
            .max()
            .unwrap_or(0)
            .max(parts.side * parts.side * 3);
        check_count("an encoder of pictures", rows, largest)?;
        let [widened, convolved, flow] = sizes.map(|numbers| rows * numbers);
        Ok(Self {
            pixels: side * side,
            flow: [placer.room(flow), placer.room(flow)],
            inner: [placer.room(widened), placer.room(convolved)],
            stem,
            blocks,
            head,
        })
    }

    /// What computes so many pictures.
    pub(super) fn launches(&self, rows: usize, bunch: BunchPlace) -> Vec<Launch> {
        let [mut from, mut to] = self.flow;
        let [widened, convolved] = self.inner;
        let mut launches = vec![self.stem.launch(rows, bunch.pictures, from)];
        for block in &self.blocks {
            let [input, output] = block.depthwise.sides.map(|side| rows * side * side);
            let inside = match &block.expand {
                Some(expand) => {
                    launches.push(expand.launch(input, from, widened, Finish::Relu6));
                    widened
                }
                None => from,
            };
            launches.push(block.depthwise.launch(rows, inside, convolved));
            let finish = match block.skip {
                true => Finish::Add(from),
                false => Finish::Keep,
            };
            launches.push(block.project.launch(output, convolved, to, finish));
            std::mem::swap(&mut from, &mut to);
        }
        let relu6 = Finish::Relu6;
        launches.push(self.head.launch(rows * self.pixels, from, widened, relu6));
        let count = rows * self.head.outputs;
        let arguments = LitePool {
            x: widened.pointer(),
            y: bunch.vectors.pointer(),
            features: Divisor::new(self.head.outputs),
            pixels: self.pixels as u32,
            share: 1.0 / self.pixels as f32,
            count: count as u32,
        };
        launches.push(Launch::new(
            &POOL,
            [count.div_ceil(THREADS), 1, 1],
            arguments,
        ));
        launches
    }
}
