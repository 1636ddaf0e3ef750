//! `data.transform`: what becomes of a picture before a network sees it.

use crate::field::Field;
use crate::keys::{Any, By, keys, words};
use schemars::JsonSchema;

/// Larger than any network's input.
const MOST_PIXELS: u32 = 16_384;

keys! {
    /// What becomes of a picture before a network sees it.
    pub struct JobTransform (Eq): all default {
        /// The shorter side is scaled to so many pixels.
        resize: Option<u32> = optional => 1..=MOST_PIXELS;
        /// The part in the middle that is kept: one number for a square, or `[height, width]`.
        crop: Option<[u32; 2]> as Option<CropKeys> = optional => By(read_crop);
        /// How pixels are interpolated.
        filter: JobFilter = default(JobFilter::Bicubic) => Any;
    }
}

words! {
    /// How pixels are interpolated; all but `nearest` average when they shrink a picture.
    pub enum JobFilter {
        /// The nearest pixel.
        "nearest" Nearest
        /// Straight lines between pixels.
        "bilinear" Bilinear
        /// Cubic curves, as CLIP was trained with.
        "bicubic" Bicubic
        /// A windowed sinc over three pixels.
        "lanczos" Lanczos
    }
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

impl JobTransform {
    /// Itself, unless every picture would get a black frame: both sides that are cut out are longer than the shorter
    /// side of any picture.
    pub(super) fn checked(self, field: &Field<'_>) -> Option<Self> {
        match (self.resize, self.crop) {
            (Some(resize), Some([height, width])) if height.min(width) > resize => field.reject(
                format!(
                    "cuts {height} x {width} pixels out of pictures whose shorter side is {resize}: the rest would be black"
                ),
                "make `resize` at least as large as `crop`",
            ),
            _ => Some(self),
        }
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
