//! The sizes of a CLIP image encoder, as its `config.json` says them.

use super::EncoderError;
use serde::Deserialize;

/// The function between the two products of a transformer block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// `x` times the logistic function of `1.702 x`.
    QuickGelu,
    /// `x` times the share of a standard normal distribution below `x`.
    Gelu,
}

/// The sizes of a CLIP image encoder; what `config.json` leaves out is as in ViT-B/32.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub struct ClipConfig {
    /// Numbers of a token.
    pub hidden_size: usize,
    /// Numbers between the two products of a block.
    pub intermediate_size: usize,
    /// Numbers of a picture's vector.
    pub projection_dim: usize,
    /// Transformer blocks.
    pub num_hidden_layers: usize,
    /// Parts that attention looks at separately.
    pub num_attention_heads: usize,
    /// Pixels of a picture's side.
    pub image_size: usize,
    /// Pixels of a patch's side.
    pub patch_size: usize,
    /// What keeps a variance from being zero.
    pub layer_norm_eps: f32,
    /// The function between a block's products.
    pub hidden_act: Activation,
    /// Channels of a picture; always 3.
    pub num_channels: usize,
}

impl Default for ClipConfig {
    fn default() -> Self {
        Self {
            hidden_size: 768,
            intermediate_size: 3072,
            projection_dim: 512,
            num_hidden_layers: 12,
            num_attention_heads: 12,
            image_size: 224,
            patch_size: 32,
            layer_norm_eps: 1e-5,
            hidden_act: Activation::QuickGelu,
            num_channels: 3,
        }
    }
}

/// The file's outermost object: that of a whole CLIP, or of its image half.
#[derive(Deserialize)]
struct Outer {
    model_type: Option<String>,
    projection_dim: Option<usize>,
    vision_config: Option<ClipConfig>,
}

/// The largest size that is taken for one: products of three fit an address.
const LARGEST: usize = 1 << 16;

impl ClipConfig {
    /// Reads `config.json` of a `clip` or a `clip_vision_model`.
    ///
    /// # Errors
    /// When it is not JSON, describes another kind of model, or sizes that do not fit each other.
    pub fn from_json(text: &str) -> Result<Self, EncoderError> {
        let json = |error: serde_json::Error| wrong(format!("config.json: {error}"));
        let outer: Outer = serde_json::from_str(text).map_err(json)?;
        let config = match outer.model_type.as_deref() {
            Some("clip") => {
                let vision = outer.vision_config.unwrap_or_default();
                Self {
                    // The whole model's projection is the one that both of its halves use.
                    projection_dim: outer.projection_dim.unwrap_or(vision.projection_dim),
                    ..vision
                }
            }
            Some("clip_vision_model") => serde_json::from_str(text).map_err(json)?,
            Some(other) => {
                return Err(wrong(format!(
                    "config.json is that of a {other:?} model; \"clip\" and \"clip_vision_model\" are known"
                )));
            }
            None => return Err(wrong("config.json does not say a model_type".into())),
        };
        config.check()?;
        Ok(config)
    }

    /// Whether the sizes fit each other.
    pub(super) fn check(&self) -> Result<(), EncoderError> {
        let sizes = [
            ("hidden_size", self.hidden_size),
            ("intermediate_size", self.intermediate_size),
            ("projection_dim", self.projection_dim),
            ("num_hidden_layers", self.num_hidden_layers),
            ("num_attention_heads", self.num_attention_heads),
            ("image_size", self.image_size),
            ("patch_size", self.patch_size),
        ];
        for (key, size) in sizes {
            if !(1..=LARGEST).contains(&size) {
                return Err(wrong(format!("{key} is {size}; it must be 1 to {LARGEST}")));
            }
        }
        if !self.hidden_size.is_multiple_of(self.num_attention_heads) {
            return Err(wrong(format!(
                "hidden_size {} is not a multiple of num_attention_heads {}",
                self.hidden_size, self.num_attention_heads
            )));
        }
        if self.patch_size > self.image_size {
            return Err(wrong(format!(
                "patch_size {} is larger than image_size {}",
                self.patch_size, self.image_size
            )));
        }
        if self.num_channels != 3 {
            return Err(wrong(format!(
                "num_channels is {}; pictures have 3",
                self.num_channels
            )));
        }
        Ok(())
    }

    /// Patches along a side.
    pub fn grid(&self) -> usize {
        self.image_size / self.patch_size
    }

    /// Tokens of a picture: its patches and the one that stands for it all.
    pub fn tokens(&self) -> usize {
        self.grid() * self.grid() + 1
    }
}

fn wrong(reason: String) -> EncoderError {
    EncoderError::Config { reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_models_file_and_the_image_halfs_are_read() {
        let whole = r#"{"model_type": "clip", "projection_dim": 768, "text_config": {"hidden_size": 9},
            "vision_config": {"hidden_size": 1024, "num_attention_heads": 16, "patch_size": 14,
            "hidden_act": "gelu", "dropout": 0.0}}"#;
        let config = ClipConfig::from_json(whole).unwrap();
        assert_eq!((config.hidden_size, config.projection_dim), (1024, 768));
        assert_eq!(
            (config.tokens(), config.hidden_act),
            (257, Activation::Gelu)
        );

        let half =
            r#"{"model_type": "clip_vision_model", "hidden_size": 64, "num_attention_heads": 4}"#;
        let config = ClipConfig::from_json(half).unwrap();
        assert_eq!((config.hidden_size, config.image_size), (64, 224));
        let empty = ClipConfig::from_json(r#"{"model_type": "clip"}"#).unwrap();
        assert_eq!(empty, ClipConfig::default());
    }

    #[test]
    fn other_models_and_sizes_that_cannot_be_are_refused_with_the_reason() {
        for (text, said) in [
            ("nonsense", "config.json"),
            ("{}", "model_type"),
            (r#"{"model_type": "bert"}"#, "bert"),
            (
                r#"{"model_type": "clip_vision_model", "hidden_size": 100}"#,
                "hidden_size 100",
            ),
            (
                r#"{"model_type": "clip_vision_model", "patch_size": 0}"#,
                "patch_size is 0",
            ),
            (
                r#"{"model_type": "clip_vision_model", "patch_size": 500}"#,
                "larger than image_size",
            ),
            (
                r#"{"model_type": "clip_vision_model", "num_channels": 4}"#,
                "num_channels",
            ),
            (
                r#"{"model_type": "clip_vision_model", "hidden_act": "relu"}"#,
                "relu",
            ),
            (
                r#"{"model_type": "clip_vision_model", "hidden_size": 9000000000}"#,
                "hidden_size",
            ),
        ] {
            let error = ClipConfig::from_json(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
