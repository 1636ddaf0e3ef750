//! EfficientNet-Lite without its classifier: 1,280 features of a picture.
//!
//! Blocks widen the channels, convolve each by itself, and narrow them again; there is no
//! squeeze-and-excitation in the Lite variants. Pictures are large and cheap at first, small and wide later:
//! the first blocks run picture by picture, in the cache, and the rest on all pictures together, so that
//! their weights are read once.

use super::activation::relu6;
use super::dense::{After, Dense};
use super::depthwise::{Depthwise, same};
use super::lite::{FEATURES, STEM, STEM_KERNEL, STEM_STRIDE};
use super::lite_parts::{LiteBlockParts, LiteParts};
use super::parts::WindowParts;
use super::square;
use crate::buffer::Buffer;
use crate::dims::Dims;
use crate::fixed16::Precision;
use crate::gemm::{Accumulate, Left, Shape, Span, Walk, nested};
use crate::layers::{carve, carved};
use crate::simd::for_each_isa;
use crate::threads::{Threads, pieces, pieces_mut};

/// Blocks run picture by picture while a picture has more pixels than this.
const SMALL: usize = 20 * 20;

/// An inverted bottleneck.
struct Bottleneck {
    input: Dims,
    output: Dims,
    expand: Option<Dense>,
    depthwise: Depthwise,
    project: Dense,
    /// Whether the input is added to the output.
    skip: bool,
}

/// The network and its buffers.
pub(super) struct EfficientNet {
    input: Dims,
    stem: Stem,
    /// How many of the blocks run picture by picture.
    early: usize,
    blocks: Vec<Bottleneck>,
    head: Dense,
    /// What goes in and out of a block; they change places.
    flow: [Buffer; 2],
    /// What is inside of a block: widened, and convolved.
    inner: [Buffer; 2],
    /// The same of one picture in the early blocks, behind the picture with its margin, for each thread.
    rooms: Buffer,
    /// Numbers of all these, and of what products of one picture work in.
    room: [usize; 6],
    /// What products of all pictures work in.
    products: Buffer,
}

impl EfficientNet {
    pub(super) fn new(
        precision: Precision,
        threads: &Threads,
        parts: LiteParts,
        rows: usize,
    ) -> Self {
        let input = square(parts.side);
        let stem = Stem::new(input, parts.stem);
        let mut dims = stem.output;
        let mut blocks = Vec::new();
        for block in parts.blocks {
            let block = Bottleneck::new(precision, dims, block);
            dims = block.output;
            blocks.push(block);
        }
        let head = Dense::new(precision, &parts.head, After::Relu6);
        let small = |block: &Bottleneck| block.output.pixels() <= SMALL;
        let early = blocks.iter().position(small).map_or(0, |first| first + 1);
        // A buffer is as large as the largest of what it ever holds.
        let most = |blocks: &[Bottleneck], size: &dyn Fn(&Bottleneck) -> usize| {
            blocks.iter().map(size).max().unwrap_or(0)
        };
        let expanded = |block: &Bottleneck| block.input.pixels() * block.inner();
        let convolved = |block: &Bottleneck| block.output.pixels() * block.inner();
        let made = |block: &Bottleneck| block.output.len();
        let (alone, together) = blocks.split_at(early);
        let flow = most(alone, &made).max(stem.output.len());
        let inner = [most(alone, &expanded), most(alone, &convolved)];
        let product = most(alone, &|block| block.room(&Threads::default(), 1));
        let room = [stem.padded.len(), flow, flow, inner[0], inner[1], product];
        let length = room.map(carved).iter().sum();
        // The early blocks' outputs for all pictures come first.
        let flow = most(together, &made).max(blocks[early - 1].output.len());
        let pooled = dims.pixels() * FEATURES;
        let inner = [
            most(together, &expanded).max(pooled),
            most(together, &convolved),
        ];
        let products = most(together, &|block| block.room(threads, rows));
        let products = products.max(head.room(threads, rows * dims.pixels()));
        Self {
            products: Buffer::large(products),
            input,
            stem,
            early,
            blocks,
            head,
            flow: [Buffer::large(rows * flow), Buffer::large(rows * flow)],
            inner: inner.map(|numbers| Buffer::large(rows * numbers)),
            rooms: Buffer::large(threads.rooms(length, rows)),
            room,
        }
    }

    /// The features of at most as many pictures as there are buffers for.
    pub(super) fn encode(&mut self, threads: &Threads, images: &[f32], out: &mut [f32]) {
        let rows = images.len() / self.input.len();
        let (early, late) = self.blocks.split_at(self.early);
        let share = early[early.len() - 1].output.len();
        let [from, to] = &mut self.flow;
        let (mut from, mut to) = (&mut from[..], &mut to[..]);
        let (stem, room) = (&self.stem, self.room);
        let length = room.map(carved).iter().sum();
        let pictures = pieces(images, self.input.len());
        let tiles = (pictures, pieces_mut(&mut from[..rows * share], share));
        threads.each_in(
            &mut self.rooms,
            length,
            tiles,
            |rest, _, (image, gathered)| {
                let (padded, rest) = carve(rest, room[0]);
                let (mut from, rest) = carve(rest, room[1]);
                let (mut to, rest) = carve(rest, room[2]);
                let (widened, rest) = carve(rest, room[3]);
                let (convolved, rest) = carve(rest, room[4]);
                let (product, _) = carve(rest, room[5]);
                // What products work in is one thread's.
                let one = Threads::default();
                let threads = if product.is_empty() { threads } else { &one };
                stem.run(image, padded, from);
                for block in early {
                    lockstep_base::progress::advance();
                    let inner = [&mut *widened, &mut *convolved];
                    block.run(threads, 1, from, to, inner, product);
                    std::mem::swap(&mut from, &mut to);
                }
                gathered.copy_from_slice(&from[..share]);
            },
        );
        let [widened, convolved] = &mut self.inner;
        for block in late {
            lockstep_base::progress::advance();
            let inner = [&mut widened[..], &mut convolved[..]];
            block.run(threads, rows, from, to, inner, &mut self.products);
            std::mem::swap(&mut from, &mut to);
        }
        let last = late.last().unwrap_or(&early[early.len() - 1]).output;
        let numbers = last.pixels() * FEATURES;
        let wide = &mut widened[..rows * numbers];
        let from = &from[..rows * last.len()];
        self.head.run(threads, from, wide, &mut self.products);
        let tiles = (pieces(wide, numbers), pieces_mut(out, FEATURES));
        threads.each(tiles, |_, (wide, out)| pool(last.pixels(), wide, out));
    }
}

for_each_isa! {
    /// The average of each feature over all pixels.
    fn pool(pixels: usize, x: &[f32], y: &mut [f32]) {
        let share = 1.0 / pixels as f32;
        for (x, y) in x.chunks_exact(pixels * FEATURES).zip(y.chunks_exact_mut(FEATURES)) {
            y.fill(0.0);
            for pixel in x.chunks_exact(FEATURES) {
                for (y, x) in y.iter_mut().zip(pixel) {
                    *y += x;
                }
            }
            for y in y {
                *y *= share;
            }
        }
    }
}

impl Bottleneck {
    fn new(precision: Precision, input: Dims, parts: LiteBlockParts) -> Self {
        let LiteBlockParts {
            shape, depthwise, ..
        } = &parts;
        let widened = Dims {
            channels: shape.inner,
            ..input
        };
        let expand = parts.expand.as_ref();
        let depthwise = Depthwise::new(widened, shape.depthwise, depthwise);
        let after = if shape.skip {
            After::Add
        } else {
            After::Nothing
        };
        Self {
            input,
            output: Dims {
                channels: shape.outputs,
                ..depthwise.output()
            },
            expand: expand.map(|expand| Dense::new(precision, expand, After::Relu6)),
            depthwise,
            project: Dense::new(precision, &parts.project, after),
            skip: shape.skip,
        }
    }

    /// Numbers of memory that its products of so many pictures need to work in.
    fn room(&self, threads: &Threads, rows: usize) -> usize {
        let expand = self.expand.as_ref();
        let expand = expand.map(|dense| dense.room(threads, rows * self.input.pixels()));
        let project = self.project.room(threads, rows * self.output.pixels());
        expand.unwrap_or(0).max(project)
    }

    /// Channels inside.
    fn inner(&self) -> usize {
        self.depthwise.output().channels
    }

    fn run(
        &self,
        threads: &Threads,
        rows: usize,
        x: &[f32],
        y: &mut [f32],
        [widened, convolved]: [&mut [f32]; 2],
        room: &mut [f32],
    ) {
        let x = &x[..rows * self.input.len()];
        let y = &mut y[..rows * self.output.len()];
        let convolved = &mut convolved[..rows * self.depthwise.output().len()];
        match &self.expand {
            Some(expand) => {
                let widened = &mut widened[..rows * self.input.pixels() * self.inner()];
                expand.run(threads, x, widened, room);
                self.depthwise.run(threads, widened, convolved);
            }
            None => self.depthwise.run(threads, x, convolved),
        }
        if self.skip {
            y.copy_from_slice(x);
        }
        self.project.run(threads, convolved, y, room);
    }
}

/// The first convolution: 3 x 3 pixels, 2 apart.
struct Stem {
    input: Dims,
    output: Dims,
    /// Lines x columns x channels x outputs.
    weight: Buffer,
    bias: Buffer,
    /// The shape of a picture with its margin, below it and to its right or all around.
    padded: Dims,
    margin: usize,
}

impl Stem {
    fn new(input: Dims, parts: WindowParts) -> Self {
        let (side, margin) = same(input.width, STEM_KERNEL, STEM_STRIDE);
        let padded = (side - 1) * STEM_STRIDE + STEM_KERNEL;
        Self {
            input,
            output: Dims {
                channels: STEM,
                ..square(side)
            },
            weight: Buffer::from(&parts.weight[..]),
            bias: Buffer::from(&parts.bias[..]),
            padded: square(padded.max(input.width + margin)),
            margin,
        }
    }

    /// Computes a picture, with room for the same with its margin.
    fn run(&self, image: &[f32], room: &mut [f32], y: &mut [f32]) {
        let line = 3 * self.input.width;
        let padded = 3 * self.padded.width;
        room.fill(0.0);
        let lines = room.chunks_exact_mut(padded).skip(self.margin);
        for (to, from) in lines.zip(image.chunks_exact(line)) {
            to[3 * self.margin..][..line].copy_from_slice(from);
        }
        let y = &mut y[..self.output.len()];
        for pixel in y.chunks_exact_mut(STEM) {
            pixel.copy_from_slice(&self.bias);
        }
        let shape = Shape {
            rows: Span {
                outer: 1,
                middle: self.output.height,
                inner: self.output.width,
            },
            columns: STEM,
            depth: Span {
                outer: 1,
                middle: STEM_KERNEL,
                inner: STEM_KERNEL * 3,
            },
        };
        let windows = Left {
            data: room,
            rows: Walk {
                outer: 0,
                middle: STEM_STRIDE * padded,
                inner: STEM_STRIDE * 3,
            },
            depth: Walk {
                outer: 0,
                middle: padded,
                inner: 1,
            },
        };
        let places = Walk {
            outer: 0,
            middle: self.output.width * STEM,
            inner: STEM,
        };
        nested(
            shape,
            windows,
            (&self.weight, STEM),
            y,
            places,
            Accumulate::Add,
        );
        relu6(y);
    }
}
