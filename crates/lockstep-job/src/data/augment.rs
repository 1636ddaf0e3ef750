//! `data.augment`: the same image, a little different in every step.

use crate::field::{Field, Rule};
use crate::keys::{Any, By, Check, Each, keys};

/// No image is as wide; how wide this one is, is only known when the data are opened.
const MOST_PADDING: usize = 65_535;

keys! {
    /// How training images are varied. Each choice is a function of the seed, the step and the sample.
    pub struct JobAugment: all default {
        /// Pixels of the black border that is put around an image before a part of the image's own size is
        /// cut out at random. 0 cuts nothing. Less than the image's height and width.
        crop_padding: usize = default(0) => 0..=MOST_PADDING;
        /// Whether every other image, chosen at random, is mirrored left to right.
        flip: bool = default(false) => Any;
        /// Scales a part of the image up to all of it. The part has a share of the area between these two numbers, and
        /// its sides differ in their ratio from the image's by a third at most.
        resized_crop: Option<[f64; 2]> = optional => By(shares);
        /// Turns the image by up to so many degrees, either way; what comes in from outside is black.
        rotation: Option<f64> = optional => Rule::ANGLE;
        /// Multiplies all values by a factor between 1 less and 1 more this.
        brightness: Option<f64> = optional => Rule::NOT_NEGATIVE;
        /// Multiplies their distance from the image's mean grey likewise.
        contrast: Option<f64> = optional => Rule::NOT_NEGATIVE;
        /// Multiplies their distance from their pixel's grey likewise; for images of three channels.
        saturation: Option<f64> = optional => Rule::NOT_NEGATIVE;
        /// The probability that a part of the image, of 2 % to 33 % of it, is blotted out with black.
        erase: Option<f64> = optional => Rule::SHARE;
        /// Adds another training image to each, both with a share, and likewise what they are to be taken for. Shares are
        /// of a beta distribution with this parameter.
        mixup: Option<f64> = optional => Rule::SPREAD;
        /// Lays a part of another training image over each, and mixes what they are to be taken for by the area. Shares
        /// are drawn as those of `mixup`; with both, each image takes one of them at random.
        cutmix: Option<f64> = optional => Rule::SPREAD;
    }
}

/// Two shares of an area, the smaller one first.
fn shares(field: &Field<'_>) -> Option<[f64; 2]> {
    match Each(Rule::SHARE).read(field)?[..] {
        [least, most] if least > 0.0 && least <= most => Some([least, most]),
        _ => field.reject(
            "must be two shares, the smaller one first and above 0",
            "for example [0.08, 1.0]",
        ),
    }
}
