//! CLIP's image encoder, as lockstep-nn computes it.

use super::BunchPlace;
use super::attention::Attention;
use super::norm::TokenNorm;
use super::place::Placer;
use super::product::{Finish, Patches, Product};
use crate::error::CudaError;
use crate::launch::Launch;
use crate::memory::DeviceSlice;
use crate::network::check_count;
use lockstep_nn::encoder::{Activation, ClipBlockParts, ClipParts};

/// A transformer block.
struct Block {
    before_attention: TokenNorm,
    attend: Product,
    out: Product,
    before_products: TokenNorm,
    up: Product,
    down: Product,
}

/// Where its numbers lie.
pub(super) struct ClipPlan {
    patches: Patches,
    before: TokenNorm,
    blocks: Vec<Block>,
    after: TokenNorm,
    projection: Product,
    attention: Attention,
    activation: Activation,
    /// Tokens of a picture, and numbers of a token.
    count: usize,
    hidden: usize,
    tokens: DeviceSlice<f32>,
    normalised: DeviceSlice<f32>,
    /// Queries, keys and values, or what lies between a block's products.
    wide: DeviceSlice<f32>,
}

impl Block {
    fn new(parts: &ClipBlockParts, placer: &mut Placer<'_>) -> Result<Self, CudaError> {
        Ok(Self {
            before_attention: TokenNorm::new(&parts.before_attention, placer)?,
            attend: Product::new(&parts.attend, placer)?,
            out: Product::new(&parts.out, placer)?,
            before_products: TokenNorm::new(&parts.before_products, placer)?,
            up: Product::new(&parts.up, placer)?,
            down: Product::new(&parts.down, placer)?,
        })
    }
}

impl ClipPlan {
    pub(super) fn new(
        parts: &ClipParts,
        rows: usize,
        placer: &mut Placer<'_>,
    ) -> Result<Self, CudaError> {
        let config = &parts.config;
        let (count, hidden) = (config.tokens(), config.hidden_size);
        let of_token = config.intermediate_size.max(3 * hidden);
        let image = 3 * config.image_size * config.image_size;
        let of_picture = (count * of_token).max(image);
        check_count("an encoder of pictures", rows, of_picture)?;
        check_count("attention", config.num_attention_heads * count, count)?;
        let all = rows * count;
        let blocks = parts.blocks.iter().map(|block| Block::new(block, placer));
        Ok(Self {
            blocks: blocks.collect::<Result<_, _>>()?,
            patches: Patches::new(parts, placer)?,
            before: TokenNorm::new(&parts.before, placer)?,
            after: TokenNorm::new(&parts.after, placer)?,
            projection: Product::new(&parts.projection, placer)?,
            attention: Attention::new(config, rows, placer),
            activation: config.hidden_act,
            tokens: placer.room(all * hidden),
            normalised: placer.room(all * hidden),
            wide: placer.room(all * of_token),
            count,
            hidden,
        })
    }

    /// What computes so many pictures.
    pub(super) fn launches(&self, rows: usize, bunch: BunchPlace) -> Vec<Launch> {
        let (all, hidden) = (rows * self.count, self.hidden);
        let Self {
            tokens,
            normalised,
            wide,
            ..
        } = *self;
        let each = (all, hidden);
        let mut launches = vec![
            self.patches.launch(rows, bunch.pictures, normalised),
            self.before.launch(each, normalised, tokens),
        ];
        for block in &self.blocks {
            launches.push(block.before_attention.launch(each, tokens, normalised));
            launches.push(block.attend.launch(all, normalised, wide, Finish::Keep));
            self.attention.push(&mut launches, rows, wide, normalised);
            let add = Finish::Add(tokens);
            launches.push(block.out.launch(all, normalised, tokens, add));
            launches.push(block.before_products.launch(each, tokens, normalised));
            let bend = Finish::Bend(self.activation);
            launches.push(block.up.launch(all, normalised, wide, bend));
            launches.push(block.down.launch(all, wide, tokens, add));
        }
        // Of each picture only the first token is of interest.
        let first = (rows, self.count * hidden);
        launches.push(self.after.launch(first, tokens, normalised));
        let to = bunch.vectors;
        launches.push(self.projection.launch(rows, normalised, to, Finish::Keep));
        launches
    }
}
