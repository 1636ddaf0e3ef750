//! `data.augment`: the same image, a little different in every step.

use crate::keys::{Any, keys};

/// No image is as wide; how wide this one is, is only known when the data are opened.
const MOST_PADDING: usize = 65_535;

keys! {
    /// How training images are varied. Each choice is a function of the seed, the step and the sample.
    pub struct JobAugment (Eq): all default {
        /// Pixels of the black border that is put around an image before a part of the image's own size is
        /// cut out at random. 0 cuts nothing. Less than the image's height and width.
        crop_padding: usize = default(0) => 0..=MOST_PADDING;
        /// Whether every other image, chosen at random, is mirrored left to right.
        flip: bool = default(false) => Any;
    }
}
