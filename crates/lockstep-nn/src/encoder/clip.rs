//! CLIP's image encoder: patches become tokens, a transformer lets them look at each other, and the
//! token that stands for the picture is projected to its vector.

use super::attention::Attention;
use super::clip_parts::{ClipBlockParts, ClipParts};
use super::config::ClipConfig;
use super::dense::{After, Dense};
use super::norm::Norm;
use super::parts::DenseParts;
use super::square;
use crate::buffer::Buffer;
use crate::fixed16::Precision;
use crate::gemm::{Accumulate, Left, Shape, Span, Walk, nested_at};
use crate::threads::{Grid, SharedMut, Threads};

/// Columns of a tile of the patches' product.
const COLUMNS: usize = 48;

/// A transformer block: attention, then two products, each on what a normalisation made of the tokens,
/// each added to them.
struct TransformerBlock {
    before_attention: Norm,
    /// Queries, keys and values in one product.
    attend: Dense,
    out: Dense,
    before_products: Norm,
    up: Dense,
    down: Dense,
}

/// The network and its buffers.
pub(super) struct Clip {
    config: ClipConfig,
    /// A patch's pixels, line by line, channels innermost, x hidden size.
    patches: Buffer,
    /// What every picture's tokens begin with: positions, and the class token on the first.
    start: Buffer,
    before: Norm,
    blocks: Vec<TransformerBlock>,
    after: Norm,
    projection: Dense,
    attention: Attention,
    tokens: Buffer,
    normalised: Buffer,
    /// Queries, keys and values, or what lies between a block's products.
    wide: Buffer,
    /// What products work in.
    room: Buffer,
}

impl Clip {
    pub(super) fn new(
        precision: Precision,
        threads: &Threads,
        parts: ClipParts,
        rows: usize,
    ) -> Self {
        let config = parts.config;
        let (hidden, tokens) = (config.hidden_size, config.tokens());
        let bend = After::Bend(config.hidden_act);
        let blocks = parts.blocks.into_iter();
        let all = rows * tokens;
        let blocks = blocks.map(|block| TransformerBlock::new(precision, block, bend));
        let blocks: Vec<TransformerBlock> = blocks.collect();
        let projection = Dense::new(precision, &parts.projection, After::Nothing);
        let products = blocks.iter().flat_map(TransformerBlock::products);
        let room = products.map(|dense| dense.room(threads, all)).max();
        let room = room.unwrap_or(0).max(projection.room(threads, rows));
        Self {
            patches: Buffer::from(&parts.patches[..]),
            start: Buffer::from(&parts.start[..]),
            before: Norm::new(parts.before),
            blocks,
            after: Norm::new(parts.after),
            projection,
            attention: Attention::new(
                threads,
                rows,
                tokens,
                config.num_attention_heads,
                hidden / config.num_attention_heads,
            ),
            tokens: Buffer::large(all * hidden),
            normalised: Buffer::large(all * hidden),
            wide: Buffer::large(all * config.intermediate_size.max(3 * hidden)),
            room: Buffer::large(room),
            config,
        }
    }

    /// The vectors of at most as many pictures as there are buffers for.
    pub(super) fn encode(&mut self, threads: &Threads, images: &[f32], out: &mut [f32]) {
        let rows = images.len() / square(self.config.image_size).len();
        let hidden = self.config.hidden_size;
        let all = rows * self.config.tokens();
        self.embed(threads, rows, images);
        let tokens = &mut self.tokens[..all * hidden];
        let normalised = &mut self.normalised[..all * hidden];
        let room = &mut self.room[..];
        for block in &self.blocks {
            lockstep_base::progress::advance();
            block.before_attention.run(threads, tokens, normalised);
            let wide = &mut self.wide[..all * 3 * hidden];
            block.attend.run(threads, normalised, wide, room);
            self.attention.run(threads, wide, normalised);
            block.out.run(threads, normalised, tokens, room);
            block.before_products.run(threads, tokens, normalised);
            let wide = &mut self.wide[..all * self.config.intermediate_size];
            block.up.run(threads, normalised, wide, room);
            block.down.run(threads, wide, tokens, room);
        }
        // Of each picture only the first token is of interest.
        let pictures = tokens.chunks_exact(self.config.tokens() * hidden);
        for (picture, to) in pictures.zip(normalised.chunks_exact_mut(hidden)) {
            self.after.run(threads, &picture[..hidden], to);
        }
        self.projection
            .run(threads, &normalised[..rows * hidden], out, room);
    }

    /// The tokens that the transformer begins with.
    fn embed(&mut self, threads: &Threads, rows: usize, images: &[f32]) {
        let ClipConfig {
            hidden_size: hidden,
            image_size,
            patch_size,
            ..
        } = self.config;
        let grid = self.config.grid();
        let picture = self.start.len();
        let tokens = &mut self.normalised[..rows * picture];
        for to in tokens.chunks_exact_mut(picture) {
            to.copy_from_slice(&self.start);
        }
        let line = 3 * image_size;
        let depth = Span {
            outer: 1,
            middle: patch_size,
            inner: 3 * patch_size,
        };
        let windows = Left {
            data: images,
            rows: Walk {
                outer: image_size * line,
                middle: patch_size * line,
                inner: 3 * patch_size,
            },
            depth: Walk {
                outer: 0,
                middle: line,
                inner: 1,
            },
        };
        let places = Walk {
            outer: picture,
            middle: grid * hidden,
            inner: hidden,
        };
        let work = rows * grid * grid * hidden * depth.len();
        let cut = Grid::new(threads, (rows, 1), (hidden, COLUMNS), work);
        let to = SharedMut::new(tokens);
        threads.each(0..cut.count(), |_, tile| {
            let (pictures, columns) = cut.tile(tile);
            let shape = Shape {
                rows: Span {
                    outer: pictures.len(),
                    middle: grid,
                    inner: grid,
                },
                columns: columns.len(),
                depth,
            };
            let windows = Left {
                data: &images[pictures.start * image_size * line..],
                ..windows
            };
            let patches = (&self.patches[columns.start..], hidden);
            // Behind the token of the picture.
            let to = (&to, pictures.start * picture + hidden + columns.start);
            // SAFETY: tiles do not overlap.
            unsafe { nested_at(shape, windows, patches, to, places, Accumulate::Add) };
        });
        self.before
            .run(threads, tokens, &mut self.tokens[..rows * picture]);
    }
}

impl TransformerBlock {
    fn new(precision: Precision, parts: ClipBlockParts, bend: After) -> Self {
        let dense = |parts: &DenseParts, after| Dense::new(precision, parts, after);
        Self {
            before_attention: Norm::new(parts.before_attention),
            attend: dense(&parts.attend, After::Nothing),
            out: dense(&parts.out, After::Add),
            before_products: Norm::new(parts.before_products),
            up: dense(&parts.up, bend),
            down: dense(&parts.down, After::Add),
        }
    }

    fn products(&self) -> [&Dense; 4] {
        [&self.attend, &self.out, &self.up, &self.down]
    }
}
