//! CLIP's image encoder: patches become tokens, a transformer lets them look at each other, and the
//! token that stands for the picture is projected to its vector.

use super::attention::Attention;
use super::config::ClipConfig;
use super::dense::{After, Dense};
use super::norm::Norm;
use super::weights::Weights;
use super::{EncoderError, square};
use crate::buffer::Buffer;
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
}

impl Clip {
    pub(super) fn new(
        threads: &Threads,
        config: &ClipConfig,
        weights: &mut Weights<'_>,
        rows: usize,
    ) -> Result<Self, EncoderError> {
        config.check()?;
        let hidden = config.hidden_size;
        let tokens = config.tokens();
        let patches = patches(config, weights)?;
        let class = weights.take("vision_model.embeddings.class_embedding", &[hidden])?;
        let mut start = weights.take(
            "vision_model.embeddings.position_embedding.weight",
            &[tokens, hidden],
        )?;
        for (start, class) in start.iter_mut().zip(&class) {
            *start += class;
        }
        let norm = |weights: &mut Weights<'_>, name: &str| {
            Norm::new(weights, name, hidden, config.layer_norm_eps)
        };
        // Its name is misspelt in every file there is.
        let before = norm(weights, "vision_model.pre_layrnorm")?;
        let blocks = (0..config.num_hidden_layers)
            .map(|i| {
                TransformerBlock::new(config, weights, &format!("vision_model.encoder.layers.{i}"))
            })
            .collect::<Result<_, _>>()?;
        let after = norm(weights, "vision_model.post_layernorm")?;
        let width = config.projection_dim;
        let projection = weights.take("visual_projection.weight", &[width, hidden])?;
        let all = rows * tokens;
        Ok(Self {
            patches,
            start: Buffer::from(&start[..]),
            before,
            blocks,
            after,
            projection: Dense::new(hidden, &projection, &vec![0.0; width], After::Nothing),
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
            config: config.clone(),
        })
    }

    /// The vectors of at most as many pictures as there are buffers for.
    pub(super) fn encode(&mut self, threads: &Threads, images: &[f32], out: &mut [f32]) {
        let rows = images.len() / square(self.config.image_size).len();
        let hidden = self.config.hidden_size;
        let all = rows * self.config.tokens();
        self.embed(threads, rows, images);
        let tokens = &mut self.tokens[..all * hidden];
        let normalised = &mut self.normalised[..all * hidden];
        for block in &self.blocks {
            lockstep_base::progress::advance();
            block.before_attention.run(threads, tokens, normalised);
            let wide = &mut self.wide[..all * 3 * hidden];
            block.attend.run(threads, normalised, wide);
            self.attention.run(threads, wide, normalised);
            block.out.run(threads, normalised, tokens);
            block.before_products.run(threads, tokens, normalised);
            let wide = &mut self.wide[..all * self.config.intermediate_size];
            block.up.run(threads, normalised, wide);
            block.down.run(threads, wide, tokens);
        }
        // Of each picture only the first token is of interest.
        let pictures = tokens.chunks_exact(self.config.tokens() * hidden);
        for (picture, to) in pictures.zip(normalised.chunks_exact_mut(hidden)) {
            self.after.run(threads, &picture[..hidden], to);
        }
        self.projection
            .run(threads, &normalised[..rows * hidden], out);
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

/// The weights of the patches, from outputs x channels x lines x columns to lines x columns x channels x
/// outputs.
fn patches(config: &ClipConfig, weights: &mut Weights<'_>) -> Result<Buffer, EncoderError> {
    let (hidden, side) = (config.hidden_size, config.patch_size);
    let name = "vision_model.embeddings.patch_embedding.weight";
    let from = weights.take(name, &[hidden, 3, side, side])?;
    let mut to = Buffer::zeros(from.len());
    for output in 0..hidden {
        for channel in 0..3 {
            for pixel in 0..side * side {
                to[(pixel * 3 + channel) * hidden + output] =
                    from[(output * 3 + channel) * side * side + pixel];
            }
        }
    }
    Ok(to)
}

impl TransformerBlock {
    fn new(
        config: &ClipConfig,
        weights: &mut Weights<'_>,
        name: &str,
    ) -> Result<Self, EncoderError> {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let epsilon = config.layer_norm_eps;
        let mut weight = Vec::with_capacity(3 * hidden * hidden);
        let mut bias = Vec::with_capacity(3 * hidden);
        for part in ["q_proj", "k_proj", "v_proj"] {
            let name = format!("{name}.self_attn.{part}");
            weight.extend(weights.take(&format!("{name}.weight"), &[hidden, hidden])?);
            bias.extend(weights.take(&format!("{name}.bias"), &[hidden])?);
        }
        let bend = After::Bend(config.hidden_act);
        let mut dense = |name: String, shape, after| Dense::named(weights, &name, shape, after);
        let out = dense(
            format!("{name}.self_attn.out_proj"),
            (hidden, hidden),
            After::Add,
        )?;
        let up = dense(format!("{name}.mlp.fc1"), (hidden, inner), bend)?;
        let down = dense(format!("{name}.mlp.fc2"), (inner, hidden), After::Add)?;
        let mut norm = |part| Norm::new(weights, &format!("{name}.{part}"), hidden, epsilon);
        Ok(Self {
            before_attention: norm("layer_norm1")?,
            attend: Dense::new(hidden, &weight, &bias, After::Nothing),
            out,
            before_products: norm("layer_norm2")?,
            up,
            down,
        })
    }
}
