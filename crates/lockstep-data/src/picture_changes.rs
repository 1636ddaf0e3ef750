//! Further changes of training images: a part that is scaled up, rotation, colours, and a part that is blotted out.
//!
//! Together with cropping and mirroring these are one map from the pixels that are seen to places in the image, which are
//! interpolated once, between the four nearest pixels. What lies outside of the image is black. Then the colours change,
//! all on raw values, and what comes out is normalised. How an image changes is a function of (seed, step, sample), made
//! of operations that IEEE 754 fixes to the bit.

use crate::DataError;
use crate::augment::ImageVariation;
use crate::scale::Scale;
use lockstep_base::random::Philox;
use serde::{Deserialize, Serialize};

/// Numbers that are normalised at a time: whole pixels of any number of channels.
const TILE: usize = 48;

/// How much a part that is scaled up may differ from the image in the ratio of its sides, as PyTorch's
/// `RandomResizedCrop` has it.
const CROP_RATIO: f64 = 4.0 / 3.0;

/// The same of a part that is blotted out, and the shares of the image that it may take, as PyTorch's `RandomErasing` has
/// them.
const ERASED_RATIO: f64 = 3.3;
const ERASED_SHARE: [f32; 2] = [0.02, 0.33];

/// How training images are changed further.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct PictureChanges {
    /// The smallest and the largest share of the image's area that is scaled up to the whole image.
    pub resized_crop: Option<[f32; 2]>,
    /// The most degrees that it is turned, either way.
    pub rotation: f32,
    /// How much brighter or darker it may become.
    pub brightness: f32,
    /// How much stronger or weaker its contrast may become.
    pub contrast: f32,
    /// How much stronger or weaker its colours may become.
    pub saturation: f32,
    /// The probability that a part of it is blotted out.
    pub erase: f32,
}

/// How one image is changed in one step.
#[derive(Debug, Clone, PartialEq)]
pub struct PictureView {
    /// The place in the image, in pixels from its corner, of the middle of what is seen.
    pub middle: [f32; 2],
    /// How that place moves for a pixel to the right; `[across, down]`.
    pub right: [f32; 2],
    /// The same for one down.
    pub down: [f32; 2],
    /// What colours are multiplied by.
    pub brightness: f32,
    /// How far they are from the mean grey then, in the place of 1.
    pub contrast: f32,
    /// How far they are from the grey of their pixel then, in the place of 1.
    pub saturation: f32,
    /// Rows and columns that are blotted out.
    pub erased: Option<[std::ops::Range<usize>; 2]>,
}

impl PictureChanges {
    /// Whether nothing changes.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Refuses what images of so many channels do not have.
    pub(crate) fn check(&self, channels: usize) -> Result<(), DataError> {
        match self.saturation > 0.0 && channels != 3 {
            false => Ok(()),
            true => Err(DataError::Setting {
                setting: "augmentation",
                reason: format!(
                    "saturation is for images of 3 channels, and these have {channels}"
                ),
            }),
        }
    }

    /// How an image of `height` x `width` pixels is changed that is also cropped from a border of `padding` and mirrored
    /// as `cut` says.
    pub(crate) fn view(
        &self,
        philox: Philox,
        counter: u128,
        cut: ImageVariation,
        (padding, height, width): (usize, usize, usize),
    ) -> PictureView {
        // The first block of a counter is that of cropping and mirroring.
        let draws = |block: u128| philox.block(counter + block).map(unit);
        let [share, ratio, across, down] = draws(1);
        let (height_f, width_f) = (height as f32, width as f32);
        let (mut part, mut corner) = ([width_f, height_f], [0.0, 0.0]);
        if let Some([least, most]) = self.resized_crop {
            part = sides(
                least + share * (most - least),
                ratio,
                CROP_RATIO,
                [width_f, height_f],
            );
            corner = [across * (width_f - part[0]), down * (height_f - part[1])];
        }
        let [angle, brightness, contrast, saturation] = draws(2);
        let turn = f64::from((2.0 * angle - 1.0) * self.rotation) * std::f64::consts::PI / 180.0;
        let (sine, cosine) = (sine(turn) as f32, cosine(turn) as f32);
        let mirror = if cut.flip { -1.0 } else { 1.0 };
        let scale = [part[0] / width_f, part[1] / height_f];
        let offset = |place: usize| place as f32 - padding as f32;
        let factor = |draw: f32, most: f32| (1.0 + (2.0 * draw - 1.0) * most).max(0.0);
        PictureView {
            middle: [
                corner[0] + part[0] / 2.0 + offset(cut.left),
                corner[1] + part[1] / 2.0 + offset(cut.top),
            ],
            right: [mirror * cosine * scale[0], mirror * sine * scale[1]],
            down: [-sine * scale[0], cosine * scale[1]],
            brightness: factor(brightness, self.brightness),
            contrast: factor(contrast, self.contrast),
            saturation: factor(saturation, self.saturation),
            erased: self.erased(draws(3), draws(4), height, width),
        }
    }

    /// The rows and columns that are blotted out, if any are.
    fn erased(
        &self,
        [whether, share, ratio, across]: [f32; 4],
        [down, ..]: [f32; 4],
        height: usize,
        width: usize,
    ) -> Option<[std::ops::Range<usize>; 2]> {
        if whether >= self.erase {
            return None;
        }
        let [least, most] = ERASED_SHARE;
        let share = least + share * (most - least);
        let [wide, high] = sides(share, ratio, ERASED_RATIO, [width as f32, height as f32]);
        let span = |length: f32, place: f32, whole: usize| {
            let length = ((length + 0.5) as usize).clamp(1, whole);
            let begin = (place * (whole - length + 1) as f32) as usize;
            begin..begin + length
        };
        Some([span(high, down, height), span(wide, across, width)])
    }
}

/// A number in `[0, 1)`.
fn unit(draw: u32) -> f32 {
    (draw >> 8) as f32 * (1.0 / 16_777_216.0)
}

/// The sides of a part of so large a share of an area with such sides, longer in one direction than in the other by at
/// most `most`, and not longer than the whole.
fn sides(share: f32, draw: f32, most: f64, whole: [f32; 2]) -> [f32; 2] {
    let ratio = power(most, 2.0 * f64::from(draw) - 1.0) as f32;
    let part = [(share * ratio).sqrt(), (share / ratio).sqrt()];
    [whole[0] * part[0].min(1.0), whole[1] * part[1].min(1.0)]
}

/// `base` to a power between -1 and 1, for a base between 1 and 4.
fn power(base: f64, exponent: f64) -> f64 {
    // ln x = 2 artanh((x - 1) / (x + 1)), then the series of the exponential function.
    let s = (base - 1.0) / (base + 1.0);
    let mut logarithm = 0.0;
    for i in (0..40).rev() {
        logarithm = logarithm * s * s + 2.0 / f64::from(2 * i + 1);
    }
    let x = logarithm * s * exponent;
    (1..=24)
        .rev()
        .fold(1.0, |sum, i| 1.0 + x / f64::from(i) * sum)
}

/// The cosine of an angle between -pi and pi.
fn cosine(x: f64) -> f64 {
    let term = |sum, i| 1.0 - x * x / f64::from((2 * i - 1) * 2 * i) * sum;
    (1..=16).rev().fold(1.0, term)
}

/// The sine of an angle between -pi and pi.
fn sine(x: f64) -> f64 {
    let term = |sum, i| 1.0 - x * x / f64::from(2 * i * (2 * i + 1)) * sum;
    x * (1..=16).rev().fold(1.0, term)
}

impl PictureView {
    /// Writes the normalised numbers of an image of `[channels, height, width]` as it is seen. Values are cut off at
    /// `most`.
    pub(crate) fn write<T: Copy + Into<f32>>(
        &self,
        image: &[T],
        [channels, height, width]: [usize; 3],
        most: f32,
        scale: &Scale,
        out: &mut [f32],
    ) {
        let (middle_x, middle_y) = (width as f32 / 2.0, height as f32 / 2.0);
        for (row, line) in out.chunks_exact_mut(width * channels).enumerate() {
            let dy = row as f32 + 0.5 - middle_y;
            for (column, pixel) in line.chunks_exact_mut(channels).enumerate() {
                let dx = column as f32 + 0.5 - middle_x;
                let x = self.middle[0] + dx * self.right[0] + dy * self.down[0];
                let y = self.middle[1] + dx * self.right[1] + dy * self.down[1];
                interpolate(image, [channels, height, width], x, y, pixel);
            }
        }
        self.colour(channels, most, out);
        for piece in out.chunks_mut(TILE) {
            let mut raw = [0.0; TILE];
            raw[..piece.len()].copy_from_slice(piece);
            scale.forward(&raw[..piece.len()], piece);
        }
        if let Some([rows, columns]) = &self.erased {
            for row in rows.clone() {
                let first = row * width * channels;
                scale.zeros(
                    &mut out[first + columns.start * channels..first + columns.end * channels],
                );
            }
        }
    }

    /// Brightness, then contrast about the mean grey, then saturation about each pixel's grey.
    fn colour(&self, channels: usize, most: f32, out: &mut [f32]) {
        if self.brightness != 1.0 {
            for x in &mut *out {
                *x = (*x * self.brightness).min(most);
            }
        }
        if self.contrast != 1.0 {
            let greys = out
                .chunks_exact(channels)
                .map(|pixel| f64::from(grey(pixel)));
            let mean = (greys.sum::<f64>() / (out.len() / channels) as f64) as f32;
            for x in &mut *out {
                *x = (mean + self.contrast * (*x - mean)).clamp(0.0, most);
            }
        }
        if self.saturation != 1.0 {
            for pixel in out.chunks_exact_mut(channels) {
                let grey = grey(pixel);
                for x in pixel {
                    *x = (grey + self.saturation * (*x - grey)).clamp(0.0, most);
                }
            }
        }
    }
}

/// How bright a pixel is, as PIL has it; without three colours, the mean.
fn grey(pixel: &[f32]) -> f32 {
    match pixel {
        [red, green, blue] => 0.299 * red + 0.587 * green + 0.114 * blue,
        channels => channels.iter().sum::<f32>() / channels.len() as f32,
    }
}

/// The image at a place between its pixels; black outside.
fn interpolate<T: Copy + Into<f32>>(
    image: &[T],
    [channels, height, width]: [usize; 3],
    x: f32,
    y: f32,
    pixel: &mut [f32],
) {
    let inside = (0.0..=width as f32).contains(&x) && (0.0..=height as f32).contains(&y);
    if !inside {
        return pixel.fill(0.0);
    }
    // The two pixels beside the place, the same one at an edge, and how near it is to the second.
    let beside = |place: f32, whole: usize| {
        let place = (place - 0.5).clamp(0.0, (whole - 1) as f32);
        let first = place as usize;
        (first, (first + 1).min(whole - 1), place - first as f32)
    };
    let (left, right, across) = beside(x, width);
    let (top, bottom, down) = beside(y, height);
    for (channel, out) in pixel.iter_mut().enumerate() {
        let at = |row: usize, column: usize| -> f32 {
            image[(row * width + column) * channels + channel].into()
        };
        let above = at(top, left) + across * (at(top, right) - at(top, left));
        let below = at(bottom, left) + across * (at(bottom, right) - at(bottom, left));
        *out = above + down * (below - above);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Augment, Augmenter};

    const SHAPE: [usize; 3] = [3, 6, 8];
    const PLAIN: ImageVariation = ImageVariation {
        top: 0,
        left: 0,
        flip: false,
    };

    fn image() -> Vec<u8> {
        (0..3 * 6 * 8).map(|i| (i * 37 % 251) as u8).collect()
    }

    fn view(
        changes: PictureChanges,
        cut: ImageVariation,
        padding: usize,
        sample: u32,
    ) -> PictureView {
        let counter = u128::from(sample) << 32;
        changes.view(Philox::new(5), counter, cut, (padding, SHAPE[1], SHAPE[2]))
    }

    fn seen(view: &PictureView) -> Vec<f32> {
        let mut out = vec![f32::NAN; 3 * 6 * 8];
        let scale = Scale::new(3, |_| (0.0, 1.0));
        view.write(&image(), SHAPE, 255.0, &scale, &mut out);
        out
    }

    #[test]
    fn what_does_not_change_is_seen_as_cropping_and_mirroring_alone_show_it() {
        let scale = Scale::new(3, |_| (0.0, 1.0));
        for flip in [false, true] {
            let augment = Augment {
                crop_padding: 2,
                flip,
            };
            let augmenter = Augmenter::new(augment, SHAPE, 3).unwrap();
            for sample in 0..50 {
                let cut = augmenter.view(9, sample);
                let mut wanted = vec![f32::NAN; 3 * 6 * 8];
                augmenter.write(cut, &image(), &scale, &mut wanted);
                let view = view(PictureChanges::default(), cut, 2, sample);
                assert_eq!(seen(&view), wanted, "{cut:?}");
            }
        }
    }

    #[test]
    fn every_change_is_within_its_bounds_and_none_is_always_the_same() {
        let changes = PictureChanges {
            resized_crop: Some([0.25, 0.5]),
            rotation: 30.0,
            brightness: 0.5,
            contrast: 0.25,
            saturation: 2.0,
            erase: 0.5,
        };
        let views: Vec<PictureView> = (0..2000).map(|i| view(changes, PLAIN, 0, i)).collect();
        let between = |name: &str, least: f32, most: f32, value: &dyn Fn(&PictureView) -> f32| {
            let values: Vec<f32> = views.iter().map(value).collect();
            let low = values.iter().copied().fold(f32::INFINITY, f32::min);
            let high = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let near = 0.1 * (most - least);
            assert!(low >= least - 1e-4 && low < least + near, "{name}: {low}");
            assert!(high <= most + 1e-4 && high > most - near, "{name}: {high}");
        };
        between("brightness", 0.5, 1.5, &|view| view.brightness);
        between("contrast", 0.75, 1.25, &|view| view.contrast);
        between("saturation", 0.0, 3.0, &|view| view.saturation);
        // The area that the map covers, as a share of the image.
        let area = |view: &PictureView| view.right[0] * view.down[1] - view.right[1] * view.down[0];
        between("area", 0.25, 0.5, &area);
        let tangent = (30.0f32).to_radians().tan();
        between("turn", -tangent, tangent, &|view| {
            view.right[1] / view.down[1]
        });
        let erased = views.iter().filter(|view| view.erased.is_some()).count();
        assert!((900..1100).contains(&erased), "{erased}");
    }

    #[test]
    fn a_quarter_of_a_turn_moves_every_pixel_to_its_place() {
        let square = [1, 3, 3];
        let image: Vec<f32> = (1..=9).map(|i| i as f32).collect();
        let view = PictureView {
            middle: [1.5, 1.5],
            right: [0.0, 1.0],
            down: [-1.0, 0.0],
            brightness: 1.0,
            contrast: 1.0,
            saturation: 1.0,
            erased: Some([0..1, 2..3]),
        };
        let mut out = [f32::NAN; 9];
        let scale = Scale::new(1, |_| (0.0, 1.0));
        view.write(&image, square, f32::MAX, &scale, &mut out);
        assert_eq!(out, [3.0, 6.0, 0.0, 2.0, 5.0, 8.0, 1.0, 4.0, 7.0]);
    }

    #[test]
    fn colours_change_as_defined() {
        let colours = |brightness, contrast, saturation| {
            let view = PictureView {
                brightness,
                contrast,
                saturation,
                ..view(PictureChanges::default(), PLAIN, 0, 0)
            };
            let mut pixels = [100.0, 200.0, 50.0, 0.0, 0.0, 0.0];
            view.colour(3, 255.0, &mut pixels);
            pixels
        };
        assert_eq!(colours(1.5, 1.0, 1.0), [150.0, 255.0, 75.0, 0.0, 0.0, 0.0]);
        let grey = 0.299 * 100.0 + 0.587 * 200.0 + 0.114 * 50.0;
        let near = |found: [f32; 6], wanted: [f32; 6]| {
            let pairs = found.iter().zip(wanted);
            pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max) < 1e-3
        };
        let mean = grey / 2.0;
        assert!(near(colours(1.0, 0.0, 1.0), [mean; 6]));
        assert!(near(
            colours(1.0, 1.0, 0.0),
            [grey, grey, grey, 0.0, 0.0, 0.0]
        ));
    }

    #[test]
    fn powers_and_angles_are_right() {
        for i in -100..=100 {
            let x = f64::from(i) / 100.0;
            assert!((power(3.3, x) - 3.3f64.powf(x)).abs() < 1e-12);
            let angle = x * std::f64::consts::PI;
            assert!((sine(angle) - angle.sin()).abs() < 1e-12);
            assert!((cosine(angle) - angle.cos()).abs() < 1e-12);
        }
    }

    #[test]
    fn what_is_drawn_for_a_seed_never_changes_and_saturation_needs_colours() {
        let changes = PictureChanges {
            brightness: 0.5,
            saturation: 0.5,
            ..PictureChanges::default()
        };
        let again = || view(changes, PLAIN, 0, 7);
        assert_eq!(again(), again());
        assert_ne!(again(), view(changes, PLAIN, 0, 8));
        let refused = changes.check(1).unwrap_err().to_string();
        assert!(
            refused.contains("saturation is for images of 3 channels"),
            "{refused}"
        );
    }
}
