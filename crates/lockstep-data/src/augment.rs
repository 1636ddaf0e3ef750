//! Augmentation: in each step an image is seen a little differently.
//!
//! A border of black pixels is put around the image and a part of its own size is cut out at a random
//! place; then the part is mirrored with probability 1/2. That is PyTorch's
//! `RandomCrop(size, padding)` and `RandomHorizontalFlip()`, done on raw values, before they are
//! normalised. Where and whether is a function of (seed, step, sample): not of the batch around the
//! sample, of its lane or of the worker that carries it.

use crate::DataError;
use crate::picture_changes::{PictureChanges, PictureView};
use crate::scale::Scale;
use lockstep_base::random::Philox;
use serde::{Deserialize, Serialize};

/// Keeps these numbers apart from those drawn elsewhere under the same seed.
const DOMAIN: u64 = u64::from_le_bytes(*b"augment.");

/// How training images are varied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Augment {
    /// Pixels of the black border that images are randomly cropped from; 0 for no cropping.
    pub crop_padding: usize,
    /// Whether images are mirrored, left to right, with probability 1/2.
    pub flip: bool,
}

/// Varies the images of a set under one seed.
#[derive(Debug, Clone, Copy)]
pub struct Augmenter {
    augment: Augment,
    /// What changes beside that, if anything does.
    changes: Option<PictureChanges>,
    philox: Philox,
    channels: usize,
    height: usize,
    width: usize,
}

/// How an image is seen in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ImageVariation {
    /// Where the part that is cut out begins in the image with its border.
    pub(crate) top: usize,
    pub(crate) left: usize,
    pub(crate) flip: bool,
}

/// How an image is seen in a step, for whoever makes its numbers elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub enum SeenImage {
    /// A part as it is, and black around the image.
    Part {
        /// The row and the column of the image that the part begins with; they may lie before it.
        begin: [isize; 2],
        /// Whether the part is mirrored, left to right.
        flip: bool,
    },
    /// Interpolated between pixels.
    Map(PictureView),
}

impl Augmenter {
    /// For samples of a shape: channels, height, width.
    ///
    /// # Errors
    /// When the samples are no images, or the border is not smaller than they are: a part could be
    /// all black then.
    pub fn new(augment: Augment, shape: [usize; 3], seed: u64) -> Result<Augmenter, DataError> {
        let [channels, height, width] = shape;
        let setting = "augmentation";
        let refused = |reason| Err(DataError::Setting { setting, reason });
        if height == 1 {
            let numbers = channels * width;
            return refused(format!(
                "the samples are rows of {numbers} numbers, not images"
            ));
        }
        let (padding, side) = (augment.crop_padding, height.min(width));
        if padding >= side {
            return refused(format!(
                "crop_padding is {padding}, but the images are {height} x {width}; it must be less than {side}"
            ));
        }
        Ok(Augmenter {
            augment,
            changes: None,
            philox: Philox::new(seed ^ DOMAIN),
            channels,
            height,
            width,
        })
    }

    /// The same, with further changes.
    ///
    /// # Errors
    /// When the samples do not have what is to change.
    pub fn with_changes(mut self, changes: PictureChanges) -> Result<Augmenter, DataError> {
        changes.check(self.channels)?;
        self.changes = Some(changes).filter(|changes| !changes.is_nothing());
        Ok(self)
    }

    /// How sample `sample` is changed further in step `step`, if it is.
    #[inline(always)]
    pub(crate) fn changed(&self, step: u64, sample: u32) -> Option<PictureView> {
        let changes = self.changes?;
        let cut = self.view(step, sample);
        let size = (self.augment.crop_padding, self.height, self.width);
        Some(changes.view(self.philox, counter(step, sample), cut, size))
    }

    /// How sample `sample` is seen in step `step`, with all that changes.
    pub fn seen(&self, step: u64, sample: u32) -> SeenImage {
        if let Some(changed) = self.changed(step, sample) {
            return SeenImage::Map(changed);
        }
        let ImageVariation { top, left, flip } = self.view(step, sample);
        let from = |place: usize| place as isize - self.augment.crop_padding as isize;
        SeenImage::Part {
            begin: [from(top), from(left)],
            flip,
        }
    }

    /// The shape of the samples that it is for: channels, height, width.
    pub(crate) fn shape(&self) -> [usize; 3] {
        [self.channels, self.height, self.width]
    }

    /// How sample `sample` is seen in step `step`.
    #[inline(always)]
    pub(crate) fn view(&self, step: u64, sample: u32) -> ImageVariation {
        let [down, right, flip, _] = self.philox.block(counter(step, sample));
        // One of 2 padding + 1 places; that they are equally likely but for 1 in 2^32 of their number
        // is enough here.
        let places = 2 * self.augment.crop_padding as u64 + 1;
        let place = |draw: u32| ((u64::from(draw) * places) >> 32) as usize;
        ImageVariation {
            top: place(down),
            left: place(right),
            flip: self.augment.flip && flip >> 31 == 1,
        }
    }

    /// Writes the normalised numbers of an image as it is seen.
    #[inline(always)]
    pub(crate) fn write<T: Copy + Default + Into<f32>>(
        &self,
        view: ImageVariation,
        image: &[T],
        scale: &Scale,
        out: &mut [f32],
    ) {
        let (padding, width) = (self.augment.crop_padding, self.width);
        let line = width * self.channels;
        // The columns of the part that show the image, and the first of the image that they show.
        let shown = padding.saturating_sub(view.left)..width.min(width + padding - view.left);
        let first = (view.left + shown.start - padding) * self.channels;
        let columns = match view.flip {
            false => shown,
            true => width - shown.end..width - shown.start,
        };
        let (begin, end) = (columns.start * self.channels, columns.end * self.channels);
        for (y, out) in out.chunks_exact_mut(line).enumerate() {
            let Some(y) = (y + view.top)
                .checked_sub(padding)
                .filter(|&y| y < self.height)
            else {
                scale.zeros(out);
                continue;
            };
            let pixels = &image[y * line + first..][..end - begin];
            scale.zeros(&mut out[..begin]);
            scale.zeros(&mut out[end..]);
            match view.flip {
                false => scale.forward(pixels, &mut out[begin..end]),
                true => scale.backward(pixels, &mut out[begin..end]),
            }
        }
    }
}

/// Random numbers that belong to a sample in a step, for whoever changes samples elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct RandomBlocks(Philox);

impl RandomBlocks {
    /// Those of a key, which must be another one than the seed itself.
    pub const fn new(key: u64) -> Self {
        Self(Philox::new(key))
    }

    /// The four numbers of a block of a sample in a step.
    pub fn block(self, step: u64, sample: u32, block: u32) -> [u32; 4] {
        self.0.block(counter(step, sample) + u128::from(block))
    }
}

/// The first of the blocks of random numbers of a sample in a step.
fn counter(step: u64, sample: u32) -> u128 {
    u128::from(step) << 64 | u128::from(sample) << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    const IDENTITY: fn(usize) -> (f32, f32) = |_| (0.0, 1.0);

    fn augmenter(crop_padding: usize, flip: bool, shape: [usize; 3]) -> Augmenter {
        let augment = Augment { crop_padding, flip };
        Augmenter::new(augment, shape, 7).unwrap()
    }

    /// The same pixel by pixel: pad, cut, mirror.
    fn by_definition(
        image: &[f32],
        shape: [usize; 3],
        padding: usize,
        view: ImageVariation,
    ) -> Vec<f32> {
        let [channels, height, width] = shape;
        let mut out = Vec::new();
        for y in 0..height {
            for x in 0..width {
                let x = if view.flip { width - 1 - x } else { x };
                let (y, x) = (y + view.top, x + view.left);
                let inside = (padding..padding + height).contains(&y)
                    && (padding..padding + width).contains(&x);
                for channel in 0..channels {
                    out.push(match inside {
                        true => image[((y - padding) * width + x - padding) * channels + channel],
                        false => 0.0,
                    });
                }
            }
        }
        out
    }

    proptest! {
        #[test]
        fn an_image_is_padded_cut_and_mirrored(
            channels in 1usize..5,
            height in 2usize..40,
            width in 1usize..40,
            padding in 0usize..40,
            flip: bool,
            (step, sample) in any::<(u64, u32)>(),
        ) {
            let shape = [channels, height, width];
            let padding = padding % height.min(width);
            let augmenter = augmenter(padding, flip, shape);
            let view = augmenter.view(step, sample);
            prop_assert!(view.top <= 2 * padding && view.left <= 2 * padding);
            let image: Vec<f32> = (1..=channels * height * width).map(|i| i as f32).collect();
            let mut out = vec![-1.0; image.len()];
            augmenter.write(view, &image, &Scale::new(channels, IDENTITY), &mut out);
            prop_assert_eq!(out, by_definition(&image, shape, padding, view));
        }
    }

    #[test]
    fn without_padding_and_mirroring_an_image_is_seen_as_it_is() {
        let augmenter = augmenter(0, false, [3, 5, 4]);
        let image: Vec<u8> = (0..60).collect();
        let scale = Scale::new(3, |channel| (channel as f32, 2.0));
        let (mut seen, mut plain) = (vec![0.0; 60], vec![0.0; 60]);
        scale.forward(&image, &mut plain);
        for step in 0..50 {
            augmenter.write(augmenter.view(step, 3), &image, &scale, &mut seen);
            assert_eq!(seen, plain);
        }
    }

    #[test]
    fn the_border_is_black_before_normalisation() {
        let augmenter = augmenter(1, false, [1, 2, 2]);
        let view = ImageVariation {
            top: 0,
            left: 0,
            flip: false,
        };
        let mut out = [9.0; 4];
        let scale = Scale::new(1, |_| (10.0, 2.0));
        augmenter.write(view, &[14u8, 0, 0, 0], &scale, &mut out);
        assert_eq!(out, [-5.0, -5.0, -5.0, 2.0]);
    }

    /// The statistic whose expectation is the number of outcomes less one.
    fn chi_square(counts: &[u32]) -> f64 {
        let expected = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
        let square = |&count: &u32| (f64::from(count) - expected).powi(2) / expected;
        counts.iter().map(square).sum()
    }

    #[test]
    fn every_view_is_equally_likely_over_samples_and_over_steps() {
        let augmenter = augmenter(4, true, [3, 32, 32]);
        let over_samples = (0..81_000).map(|sample| augmenter.view(11, sample));
        let over_steps = (0..81_000).map(|step| augmenter.view(step, 5));
        let draws: [Vec<ImageVariation>; 2] = [over_samples.collect(), over_steps.collect()];
        for views in draws {
            let mut counts = HashMap::new();
            for view in views {
                *counts.entry(view).or_insert(0) += 1;
            }
            let counts: Vec<u32> = counts.into_values().collect();
            // 9 x 9 places, mirrored or not; 161 degrees of freedom, a deviation of 18.
            assert_eq!(counts.len(), 162);
            assert!(chi_square(&counts) < 161.0 + 4.0 * 18.0, "{counts:?}");
        }
    }

    #[test]
    fn what_is_drawn_for_a_seed_never_changes() {
        let augmenter = augmenter(4, true, [3, 32, 32]);
        let views = [(0, 0), (0, 1), (1, 0)].map(|(step, sample)| augmenter.view(step, sample));
        let seen = views.map(|view| (view.top, view.left, view.flip));
        assert_eq!(seen, [(6, 1, true), (0, 2, false), (0, 4, true)]);
    }

    #[test]
    fn another_seed_sees_other_views() {
        let views = |seed| {
            let augment = Augment {
                crop_padding: 4,
                flip: true,
            };
            let augmenter = Augmenter::new(augment, [3, 32, 32], seed).unwrap();
            [0, 1, 2, 3].map(|sample| augmenter.view(0, sample))
        };
        assert_ne!(views(0), views(1));
    }

    #[test]
    fn what_does_not_fit_the_samples_is_refused() {
        let refusal = |crop_padding, shape| {
            let augment = Augment {
                crop_padding,
                flip: true,
            };
            Augmenter::new(augment, shape, 0).unwrap_err().to_string()
        };
        assert_eq!(
            refusal(28, [1, 32, 28]),
            "the augmentation cannot be used: crop_padding is 28, but the images are 32 x 28; it must \
             be less than 28"
        );
        assert!(refusal(0, [1, 1, 13]).ends_with("the samples are rows of 13 numbers, not images"));
    }
}
