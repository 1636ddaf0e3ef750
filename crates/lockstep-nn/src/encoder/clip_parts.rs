//! The numbers of CLIP's image encoder.

use super::EncoderError;
use super::config::ClipConfig;
use super::parts::{DenseParts, NormParts};
use super::weights::Weights;

/// All numbers of CLIP's image encoder.
#[derive(Debug, Clone, PartialEq)]
pub struct ClipParts {
    /// Its sizes.
    pub config: ClipConfig,
    /// A patch's pixels, line by line, channels innermost, x hidden size.
    pub patches: Vec<f32>,
    /// What every picture's tokens begin with: positions, and the class token on the first.
    pub start: Vec<f32>,
    /// The normalisation before the blocks.
    pub before: NormParts,
    /// The transformer's blocks.
    pub blocks: Vec<ClipBlockParts>,
    /// The normalisation of the token that stands for the picture.
    pub after: NormParts,
    /// What makes its vector of that token.
    pub projection: DenseParts,
}

/// A transformer block.
#[derive(Debug, Clone, PartialEq)]
pub struct ClipBlockParts {
    /// The normalisation before attention.
    pub before_attention: NormParts,
    /// Queries, keys and values in one product.
    pub attend: DenseParts,
    /// What is made of the mixed values, and added to the tokens.
    pub out: DenseParts,
    /// The normalisation before the products.
    pub before_products: NormParts,
    /// The product whose numbers are then bent.
    pub up: DenseParts,
    /// The one whose numbers are added to the tokens.
    pub down: DenseParts,
}

impl ClipParts {
    pub(super) fn read(
        config: &ClipConfig,
        weights: &mut Weights<'_>,
    ) -> Result<Self, EncoderError> {
        config.check()?;
        let hidden = config.hidden_size;
        let patches = patches(config, weights)?;
        let class = weights.take("vision_model.embeddings.class_embedding", &[hidden])?;
        let mut start = weights.take(
            "vision_model.embeddings.position_embedding.weight",
            &[config.tokens(), hidden],
        )?;
        for (start, class) in start.iter_mut().zip(&class) {
            *start += class;
        }
        let norm = |weights: &mut Weights<'_>, name: &str| {
            NormParts::named(weights, name, hidden, config.layer_norm_eps)
        };
        // Its name is misspelt in every file there is.
        let before = norm(weights, "vision_model.pre_layrnorm")?;
        let blocks = (0..config.num_hidden_layers)
            .map(|i| {
                ClipBlockParts::read(config, weights, &format!("vision_model.encoder.layers.{i}"))
            })
            .collect::<Result<_, _>>()?;
        let after = norm(weights, "vision_model.post_layernorm")?;
        let width = config.projection_dim;
        Ok(Self {
            config: config.clone(),
            patches,
            start,
            before,
            blocks,
            after,
            projection: DenseParts {
                inputs: hidden,
                weight: weights.take("visual_projection.weight", &[width, hidden])?,
                bias: vec![0.0; width],
            },
        })
    }
}

impl ClipBlockParts {
    fn read(
        config: &ClipConfig,
        weights: &mut Weights<'_>,
        name: &str,
    ) -> Result<Self, EncoderError> {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let mut attend = DenseParts {
            inputs: hidden,
            weight: Vec::with_capacity(3 * hidden * hidden),
            bias: Vec::with_capacity(3 * hidden),
        };
        for part in ["q_proj", "k_proj", "v_proj"] {
            let name = format!("{name}.self_attn.{part}");
            let part = DenseParts::named(weights, &name, [hidden; 2])?;
            attend.weight.extend(part.weight);
            attend.bias.extend(part.bias);
        }
        let mut dense = |part, shape| DenseParts::named(weights, &format!("{name}.{part}"), shape);
        let out = dense("self_attn.out_proj", [hidden; 2])?;
        let up = dense("mlp.fc1", [hidden, inner])?;
        let down = dense("mlp.fc2", [inner, hidden])?;
        let mut norm = |part| {
            let name = format!("{name}.{part}");
            NormParts::named(weights, &name, hidden, config.layer_norm_eps)
        };
        Ok(Self {
            before_attention: norm("layer_norm1")?,
            attend,
            out,
            before_products: norm("layer_norm2")?,
            up,
            down,
        })
    }
}

/// The weights of the patches, from outputs x channels x lines x columns to lines x columns x channels x
/// outputs.
fn patches(config: &ClipConfig, weights: &mut Weights<'_>) -> Result<Vec<f32>, EncoderError> {
    let (hidden, side) = (config.hidden_size, config.patch_size);
    let name = "vision_model.embeddings.patch_embedding.weight";
    let from = weights.take(name, &[hidden, 3, side, side])?;
    Ok(super::parts::windows(&from, hidden, side * side))
}
