//! Attention of a picture's tokens to each other: three kernels, for some pictures at a time.

use super::norm::{ROWS, THREADS};
use super::place::Placer;
use super::product::{THREADS as MULTIPLYING, TILE, in_fours};
use crate::arguments::{Pointer, arguments};
use crate::kernels::{ATTENTION, Kernel};
use crate::launch::Launch;
use crate::memory::DeviceSlice;
use crate::network::Divisor;
use lockstep_nn::encoder::ClipConfig;

arguments! {
    /// What all heads of all pictures have in common.
    struct AttentionShape {
        tokens: u32,
        heads: Divisor,
        width: u32,
        hidden: u32,
        stride: u32,
        blocks: Divisor,
        across: Divisor,
        fours: u32,
    }

    struct AttentionScores {
        x: Pointer<f32>,
        scores: Pointer<f32>,
        shape: AttentionShape,
    }

    struct AttentionShares {
        scores: Pointer<f32>,
        rows: u32,
        tokens: u32,
        stride: u32,
        scale: f32,
    }

    struct AttentionMix {
        x: Pointer<f32>,
        shares: Pointer<f32>,
        y: Pointer<f32>,
        shape: AttentionShape,
    }
}

const SCORES: Kernel<AttentionScores> = Kernel::new(&ATTENTION, "attention_scores", MULTIPLYING);
const SHARES: Kernel<AttentionShares> = Kernel::new(&ATTENTION, "attention_shares", THREADS);
const MIX: Kernel<AttentionMix> = Kernel::new(&ATTENTION, "attention_mix", MULTIPLYING);

/// Scores of tokens that are kept at a time: 128 MB, unless one picture has more.
const MOST_SCORES: usize = 32 << 20;

/// Attention.
pub(super) struct Attention {
    tokens: usize,
    heads: usize,
    /// Numbers of a token in one head.
    width: usize,
    /// What each token thinks of each, in every head of some pictures.
    scores: DeviceSlice<f32>,
    /// Pictures that there is room for.
    pictures: usize,
}

impl Attention {
    /// For up to `rows` pictures.
    pub(super) fn new(config: &ClipConfig, rows: usize, placer: &mut Placer<'_>) -> Self {
        let (tokens, heads) = (config.tokens(), config.num_attention_heads);
        let of_picture = heads * tokens * tokens.next_multiple_of(4);
        let pictures = (MOST_SCORES / of_picture).clamp(1, rows);
        Self {
            tokens,
            heads,
            width: config.hidden_size / heads,
            scores: placer.room(pictures * of_picture),
            pictures,
        }
    }

    fn shape(&self, columns: usize) -> AttentionShape {
        let [down, across] = [self.tokens, columns].map(|numbers| numbers.div_ceil(TILE));
        AttentionShape {
            tokens: self.tokens as u32,
            heads: Divisor::new(self.heads),
            width: self.width as u32,
            hidden: (self.heads * self.width) as u32,
            stride: self.tokens.next_multiple_of(4) as u32,
            blocks: Divisor::new(down * across),
            across: Divisor::new(across),
            fours: in_fours(self.width),
        }
    }

    /// Appends what mixes the values in `x`, of so many pictures, to `y`. A token of `x` is its queries, keys and values.
    pub(super) fn push(
        &self,
        launches: &mut Vec<Launch>,
        rows: usize,
        x: DeviceSlice<f32>,
        y: DeviceSlice<f32>,
    ) {
        let of_picture = self.tokens * self.heads * self.width;
        let blocks = |columns: usize| self.tokens.div_ceil(TILE) * columns.div_ceil(TILE);
        for first in (0..rows).step_by(self.pictures) {
            let pictures = self.pictures.min(rows - first);
            let range = first * of_picture..(first + pictures) * of_picture;
            let x = x.part(3 * range.start..3 * range.end).pointer();
            let (pairs, scores) = (pictures * self.heads, self.scores.pointer());
            let arguments = AttentionScores {
                x,
                scores,
                shape: self.shape(self.tokens),
            };
            let of_scores = [pairs * blocks(self.tokens), 1, 1];
            launches.push(Launch::new(&SCORES, of_scores, arguments));
            let all = pairs * self.tokens;
            let arguments = AttentionShares {
                scores,
                rows: all as u32,
                tokens: self.tokens as u32,
                stride: self.tokens.next_multiple_of(4) as u32,
                scale: 1.0 / (self.width as f32).sqrt(),
            };
            launches.push(Launch::new(&SHARES, [all.div_ceil(ROWS), 1, 1], arguments));
            let arguments = AttentionMix {
                x,
                shares: scores,
                y: y.part(range).pointer(),
                shape: self.shape(self.width),
            };
            let of_values = [pairs * blocks(self.width), 1, 1];
            launches.push(Launch::new(&MIX, of_values, arguments));
        }
    }
}
