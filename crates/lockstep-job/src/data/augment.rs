//! `data.augment`: the same image, a little different in every step.

use crate::section::Section;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// No image is as wide; how wide this one is, is only known when the data are opened.
const MOST_PADDING: usize = 65_535;

/// How training images are varied. Each choice is a function of the seed, the step and the sample.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Augment {
    /// Pixels of the black border that is put around an image before a part of the image's own size is
    /// cut out at random. 0 cuts nothing. Less than the image's height and width.
    #[serde(default)]
    pub crop_padding: usize,
    /// Whether every other image, chosen at random, is mirrored left to right.
    #[serde(default)]
    pub flip: bool,
}

impl Augment {
    pub(super) fn read(mut section: Section<'_>) -> Option<Augment> {
        let crop_padding = section.or("crop_padding", 0, |field| field.integer(0..=MOST_PADDING));
        let flip = section.or("flip", false, |field| field.boolean());
        section.finish();
        Some(Augment {
            crop_padding: crop_padding?,
            flip: flip?,
        })
    }
}
