//! `data.transform`: what becomes of a picture before a network sees it.

use crate::field::Field;
use crate::section::Section;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Larger than any network's input.
const MOST_PIXELS: u32 = 16_384;

/// What becomes of a picture before a network sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transform {
    /// The shorter side is scaled to so many pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub resize: Option<u32>,
    /// The part in the middle that is kept: one number for a square, or `[height, width]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<CropKeys>")]
    pub crop: Option<[u32; 2]>,
    /// How pixels are interpolated.
    #[serde(default)]
    pub filter: Filter,
}

/// How pixels are interpolated; all but `nearest` average when they shrink a picture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Filter {
    /// The nearest pixel.
    Nearest,
    /// Straight lines between pixels.
    Bilinear,
    /// Cubic curves, as CLIP was trained with.
    #[default]
    Bicubic,
    /// A windowed sinc over three pixels.
    Lanczos,
}

/// A size as the job file writes it, for the schema.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum CropKeys {
    /// Height and width.
    Square(u32),
    /// Height, then width.
    Sides([u32; 2]),
}

impl Transform {
    pub(super) fn read(mut section: Section<'_>) -> Option<Transform> {
        let resize = section.maybe("resize", |field| field.integer(1..=MOST_PIXELS));
        let crop = section.maybe("crop", |field| read_crop(&field));
        let filter = section.or("filter", Filter::default(), |field| {
            let words = ["nearest", "bilinear", "bicubic", "lanczos"];
            Some(match field.one_of(&words)? {
                "nearest" => Filter::Nearest,
                "bilinear" => Filter::Bilinear,
                "bicubic" => Filter::Bicubic,
                _ => Filter::Lanczos,
            })
        });
        section.finish();
        Some(Transform {
            resize: resize?,
            crop: crop?,
            filter: filter?,
        })
    }
}

fn read_crop(field: &Field<'_>) -> Option<[u32; 2]> {
    if !field.is_array() {
        return field.integer(1..=MOST_PIXELS).map(|side| [side; 2]);
    }
    let sides = field.all(|side| side.integer(1..=MOST_PIXELS))?;
    match <[u32; 2]>::try_from(sides) {
        Ok(sides) => Some(sides),
        Err(sides) => field.reject(
            format!("must be one number or two, found {}", sides.len()),
            "write [height, width]",
        ),
    }
}
