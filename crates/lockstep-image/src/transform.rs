//! What is done to every picture, as a job file says it, and the geometry of it.

use serde::{Deserialize, Serialize};

use crate::{ImageError, PictureHeader};

/// What is done to every picture, in this order: the shorter side is resized, the middle is cut out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Transform {
    /// What the shorter side becomes, in pixels; the other one follows. Nothing leaves the size as it is.
    pub resize: Option<u32>,
    /// Height and width that are cut out, from the middle. Nothing is a square of `resize`.
    pub crop: Option<[u32; 2]>,
    /// How pixels are resampled.
    pub filter: Filter,
    /// Never set: nothing here is left to chance. Saved recipes and their hashes hold it.
    pub random_crop: bool,
    /// Never set, as `random_crop`.
    pub flip: bool,
}

/// How pixels are resampled; all but `nearest` look at every pixel that they shrink, as PIL's filters do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Filter {
    /// Triangles; torchvision's default.
    #[default]
    Bilinear,
    /// Cubic splines; what CLIP expects.
    Bicubic,
    /// Three lobes of a sinc.
    Lanczos,
    /// The nearest pixel.
    Nearest,
}

/// More than a picture for a model ever has, and little enough for offsets to fit everywhere.
const MAX_SIDE: u32 = 16_384;

impl Transform {
    /// Height and width of what comes out.
    ///
    /// # Errors
    /// If neither `crop` nor `resize` says it, or a side is zero or beyond reason.
    pub fn output(&self) -> Result<[u32; 2], ImageError> {
        let wrong = |what: &str| Err(ImageError::Transform(what.into()));
        let sides = [
            self.resize,
            self.crop.map(|crop| crop[0]),
            self.crop.map(|crop| crop[1]),
        ];
        if sides
            .iter()
            .flatten()
            .any(|&side| side == 0 || side > MAX_SIDE)
        {
            return wrong(&format!(
                "resize and crop must be from 1 to {MAX_SIDE} pixels"
            ));
        }
        match (self.crop, self.resize) {
            (Some(crop), _) => Ok(crop),
            (None, Some(side)) => Ok([side, side]),
            (None, None) => {
                wrong("the transform needs a resize or a crop: pictures of one size must come out")
            }
        }
    }

    /// Width and height of a picture after `resize`, as torchvision rounds: the longer side is rounded down.
    pub(crate) fn resized(&self, (width, height): (u32, u32)) -> (u32, u32) {
        let Some(side) = self.resize else {
            return (width, height);
        };
        let longer = |long: u32, short: u32| {
            let scaled = u64::from(side) * u64::from(long) / u64::from(short);
            u32::try_from(scaled).unwrap_or(u32::MAX)
        };
        if width <= height {
            (side, longer(height, width))
        } else {
            (longer(width, height), side)
        }
    }

    /// The most bytes that a [`crate::Transformer`] takes for a picture with this header, the file's own bytes not.
    pub fn memory(&self, header: &PictureHeader) -> u64 {
        let [height, width] = self.output().unwrap_or_default().map(u64::from);
        // Pixels between the two directions of resampling, in either order, and those that come out.
        let (columns, rows) = header.upright();
        let between = (width * u64::from(rows)).max(height * u64::from(columns));
        let weights = WEIGHTS * (width + height + u64::from(rows));
        header.memory() + 4 * (between + width * height) + 3 * width * height + weights
    }
}

/// What the resampler holds for a row or a column that comes out: a vector of weights and its share of the others.
const WEIGHTS: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn resize(side: u32) -> Transform {
        Transform {
            resize: Some(side),
            ..Transform::default()
        }
    }

    #[test]
    fn the_longer_side_is_rounded_down() {
        // torchvision.transforms.Resize(224) of 500 x 375, 375 x 500, 333 x 500 and 224 x 224.
        assert_eq!(resize(224).resized((500, 375)), (298, 224));
        assert_eq!(resize(224).resized((375, 500)), (224, 298));
        assert_eq!(resize(256).resized((333, 500)), (256, 384));
        assert_eq!(resize(224).resized((224, 224)), (224, 224));
        assert_eq!(resize(16_384).resized((1, 65_535)), (16_384, 1_073_725_440));
    }

    #[test]
    fn without_a_crop_a_square_comes_out() {
        assert_eq!(resize(224).output(), Ok([224, 224]));
        assert!(Transform::default().output().is_err());
        assert!(resize(0).output().is_err());
    }

    #[test]
    fn a_job_file_says_it_in_a_few_words() {
        let text = r#"{"resize": 256, "crop": [224, 192], "filter": "bicubic"}"#;
        let transform: Transform = serde_json::from_str(text).unwrap();
        assert_eq!(transform.output(), Ok([224, 192]));
        assert_eq!(transform.filter, Filter::Bicubic);
        assert!(serde_json::from_str::<Transform>(r#"{"resise": 256}"#).is_err());
    }
}
