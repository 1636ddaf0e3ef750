//! Batches: rows of normalised numbers, gathered from samples anywhere in a set.
//!
//! Every row is written once, from the mapped samples straight to where the model reads it, augmented
//! on the way if that is asked for. Its bits are the same on every machine, and those of an augmented
//! row do not depend on the rows beside it.

use crate::layout::MOST_CHANNELS;
use crate::prefetch::prefetch;
use crate::scale::Scale;
use crate::{Augmenter, DataError, Dataset, Encoding, StoredElement, TargetScale};
use serde::{Deserialize, Serialize};

/// How many rows ahead of the one being written samples are asked for: enough to cover the way to
/// main memory, few enough to stay within what a core can have under way.
const ROWS_AHEAD: usize = 4;

/// The scale of samples: a number for each channel, or one for all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Normalisation {
    /// What is subtracted.
    pub mean: Vec<f64>,
    /// What is divided by.
    pub std: Vec<f64>,
}

/// How raw values become the numbers that a model sees: `(x - mean) / std` for each channel, where a
/// byte counts as `x / 255`.
#[derive(Debug, Clone, PartialEq)]
pub struct Normaliser {
    channels: usize,
    /// One for each channel, or one for all of them.
    each: Vec<Channel>,
    /// What is done instead to the rows of a table that are not just numbers.
    encoding: Option<Encoding>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Channel {
    mean: f64,
    std: f64,
}

impl Normaliser {
    /// Brings `channels` channels to the scale that is wanted, or leaves them as they are.
    ///
    /// # Errors
    /// As [`Normaliser::new`].
    pub fn of(wanted: Option<&Normalisation>, channels: usize) -> Result<Normaliser, DataError> {
        match wanted {
            Some(scale) => Normaliser::new(&scale.mean, &scale.std, channels),
            None => Ok(Normaliser::identity(channels)),
        }
    }

    /// Normalises `channels` channels; a single mean or deviation stands for all of them.
    ///
    /// # Errors
    /// When there is neither one number nor one for each channel, when a number is not finite, or
    /// when a deviation is not above 0.
    pub fn new(mean: &[f64], std: &[f64], channels: usize) -> Result<Normaliser, DataError> {
        check("mean", mean, channels, "a finite number", |_| true)?;
        check("std", std, channels, "a finite number above 0", |value| {
            value >= f32::MIN_POSITIVE
        })?;
        let of = |values: &[f64], channel| values[if values.len() == 1 { 0 } else { channel }];
        let channel = |channel| Channel {
            mean: of(mean, channel),
            std: of(std, channel),
        };
        let different = mean.len().max(std.len());
        Ok(Normaliser {
            channels,
            each: (0..different).map(channel).collect(),
            encoding: None,
        })
    }

    /// For samples in which 1 is stored as `one`; `None` if they are vectors with numbers of their own for
    /// each channel.
    pub(crate) fn scale(&self, one: f64) -> Option<Scale> {
        // Where all channels are normalised alike, a vector is as good as a line of single ones.
        let channels = match (self.channels, self.each.len()) {
            (channels, 1) if channels > MOST_CHANNELS => 1,
            (channels, _) => channels,
        };
        (channels <= MOST_CHANNELS).then(|| {
            Scale::new(channels, |channel| {
                let Channel { mean, std } =
                    self.each[if self.each.len() == 1 { 0 } else { channel }];
                ((one * mean) as f32, (one * std) as f32)
            })
        })
    }

    /// Normalises a vector with numbers of their own for each channel.
    fn vector(&self, raw: &[f32], out: &mut [f32]) {
        for ((number, value), Channel { mean, std }) in out.iter_mut().zip(raw).zip(&self.each) {
            *number = (value - *mean as f32) / *std as f32;
        }
    }

    /// Changes nothing but the scale: bytes become 0 to 1, numbers stay.
    pub fn identity(channels: usize) -> Normaliser {
        let each = vec![Channel {
            mean: 0.0,
            std: 1.0,
        }];
        Normaliser {
            channels,
            each,
            encoding: None,
        }
    }

    /// Encodes rows of `columns` numbers.
    pub fn encoded(columns: usize, encoding: Encoding) -> Normaliser {
        Normaliser {
            encoding: Some(encoding),
            ..Normaliser::identity(columns)
        }
    }

    /// Numbers of a row of a batch, where a sample has so many.
    pub fn row_len(&self, sample_len: usize) -> usize {
        self.encoding.as_ref().map_or(sample_len, Encoding::width)
    }

    /// How rows of a table are encoded, if they are.
    pub fn encoding(&self) -> Option<&Encoding> {
        self.encoding.as_ref()
    }
}

/// Checks the numbers of one key, as the `f32` that they are used as.
fn check(
    key: &str,
    values: &[f64],
    channels: usize,
    right: &str,
    fits: impl Fn(f32) -> bool,
) -> Result<(), DataError> {
    let reason = if values.len() != 1 && values.len() != channels {
        let found = values.len();
        match channels {
            1 => format!("{key} has {found} numbers for 1 channel; give 1"),
            _ => format!("{key} has {found} numbers for {channels} channels; give 1 or {channels}"),
        }
    } else if let Some(wrong) = values.iter().find(|value| {
        let value = **value as f32;
        !((255.0 * value).is_finite() && fits(value))
    }) {
        format!("{key} holds {wrong}; it must be {right}")
    } else {
        return Ok(());
    };
    let setting = "normalisation";
    Err(DataError::Setting { setting, reason })
}

impl Dataset {
    /// Writes the samples `indices`, normalised, to the rows of `out`. Allocates nothing.
    ///
    /// # Panics
    /// When an index is not below [`len`](Dataset::len), `out` does not hold exactly a row of
    /// [`row_len`](Normaliser::row_len) for each index, or `normaliser` is for another number of channels.
    pub fn gather(&self, indices: &[u32], normaliser: &Normaliser, out: &mut [f32]) {
        self.gather_seen(indices, normaliser, None, out);
    }

    /// Like [`gather`](Dataset::gather), but each sample as `augmenter` shows it in step `step`.
    ///
    /// # Panics
    /// As [`gather`](Dataset::gather), and when `augmenter` is for samples of another shape.
    pub fn gather_augmented(
        &self,
        indices: &[u32],
        normaliser: &Normaliser,
        (augmenter, step): (&Augmenter, u64),
        out: &mut [f32],
    ) {
        assert_eq!(
            augmenter.shape(),
            self.shape(),
            "an augmenter for other samples"
        );
        self.gather_seen(indices, normaliser, Some((augmenter, step)), out);
    }

    /// Writes the classes of the samples `indices` to `out`. Allocates nothing.
    ///
    /// # Panics
    /// When an index is not below [`len`](Dataset::len), the set's samples have no classes, or `out` does not
    /// hold exactly a number for each index.
    pub fn gather_labels(&self, indices: &[u32], out: &mut [u32]) {
        assert_eq!(out.len(), indices.len(), "one label for each index");
        let labels = self.labels();
        for (label, &index) in out.iter_mut().zip(indices) {
            *label = labels[index as usize];
        }
    }

    /// Writes what is to be predicted of the samples `indices`, as `scale` shows it, to the rows of `out`.
    /// Allocates nothing.
    ///
    /// # Panics
    /// When an index is not below [`len`](Dataset::len), the set's samples have classes, `out` does not hold
    /// exactly [`outputs`](Dataset::outputs) numbers for each index, or `scale` is for another number of them.
    pub fn gather_numbers(&self, indices: &[u32], scale: &TargetScale, out: &mut [f32]) {
        let width = self.outputs();
        assert_eq!(out.len(), indices.len() * width, "one row for each index");
        let numbers = self.numbers();
        for (row, &index) in out.chunks_exact_mut(width).zip(indices) {
            scale.forward(&numbers[index as usize * width..][..width], row);
        }
    }

    fn gather_seen(
        &self,
        indices: &[u32],
        normaliser: &Normaliser,
        augmented: Option<(&Augmenter, u64)>,
        out: &mut [f32],
    ) {
        assert_eq!(
            normaliser.channels,
            self.shape()[0],
            "a normaliser for other channels"
        );
        assert_eq!(
            out.len(),
            indices.len() * normaliser.row_len(self.sample_len()),
            "one row for each index"
        );
        if let Some(encoding) = &normaliser.encoding {
            let len = self.sample_len();
            for (row, &index) in out.chunks_exact_mut(encoding.width()).zip(indices) {
                encoding.encode(&self.floats()[index as usize * len..][..len], row);
            }
            return;
        }
        let (one, most) = self.element().range();
        match self.element() {
            StoredElement::U8 => {
                let scale = normaliser.scale(one).expect("vectors are no bytes");
                gather_rows(self.bytes(), indices, (&scale, most), augmented, out);
            }
            StoredElement::F32 => match normaliser.scale(one) {
                Some(scale) => {
                    gather_rows(self.floats(), indices, (&scale, most), augmented, out);
                }
                None => {
                    let len = self.sample_len();
                    for (row, &index) in out.chunks_exact_mut(len).zip(indices) {
                        normaliser.vector(&self.floats()[index as usize * len..][..len], row);
                    }
                }
            },
        }
    }
}

/// Writes the samples `indices` of `samples`, whose values are at most `most`, to the rows of `out`.
#[inline(always)]
fn gather_rows<T: Copy + Default + Into<f32>>(
    samples: &[T],
    indices: &[u32],
    (scale, most): (&Scale, f32),
    augmented: Option<(&Augmenter, u64)>,
    out: &mut [f32],
) {
    if indices.is_empty() {
        return;
    }
    let sample_len = out.len() / indices.len();
    let sample = |index: u32| &samples[index as usize * sample_len..][..sample_len];
    indices
        .iter()
        .take(ROWS_AHEAD)
        .for_each(|&index| prefetch(sample(index)));
    for (row, (i, &index)) in out
        .chunks_exact_mut(sample_len)
        .zip(indices.iter().enumerate())
    {
        if let Some(&ahead) = indices.get(i + ROWS_AHEAD) {
            prefetch(sample(ahead));
        }
        match augmented {
            None => scale.forward(sample(index), row),
            Some((augmenter, step)) => match augmenter.changed(step, index) {
                None => {
                    let view = augmenter.view(step, index);
                    augmenter.write(view, sample(index), scale, row);
                }
                Some(changed) => changed.write(sample(index), augmenter.shape(), most, scale, row),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Augment;
    use crate::testing::Folder;
    use proptest::prelude::*;

    #[test]
    fn bytes_are_scaled_and_normalised_to_the_last_bit() {
        let folder = Folder::new();
        let bytes: Vec<u8> = (0..=255).collect();
        let set = folder.dataset(&folder.idx(8, &[256], &bytes), &folder.labels(&[0; 256]));
        let indices: Vec<u32> = (0..256).collect();
        let (mut out, mut labels) = ([0.0; 256], [9; 256]);
        set.gather(&indices, &Normaliser::identity(1), &mut out);
        set.gather_labels(&indices, &mut labels);
        for (byte, value) in out.iter().enumerate() {
            assert_eq!(value.to_bits(), (byte as f32 / 255.0).to_bits(), "{byte}");
        }
        assert_eq!(labels, [0; 256]);

        let normaliser = Normaliser::new(&[0.28604], &[0.32025], 1).unwrap();
        set.gather(&indices, &normaliser, &mut out);
        for (byte, value) in out.iter().enumerate() {
            let exact = (byte as f64 / 255.0 - 0.28604) / 0.32025;
            assert!(
                (f64::from(*value) - exact).abs() < 1e-6,
                "{byte}: {value} for {exact}"
            );
        }
        // Known bits: another formula, compiler or machine must not change them.
        let bits = [0, 1, 128, 255].map(|byte: usize| out[byte].to_bits());
        assert_eq!(bits, [0xbf64_a743, 0xbf61_84c0, 0x3f2c_9a0e, 0x400e_ae37]);
    }

    #[test]
    fn rows_come_in_the_order_of_the_indices_with_their_labels() {
        let folder = Folder::new();
        let images = folder.idx(8, &[6, 2], &[0, 1, 10, 11, 20, 21, 30, 31, 40, 41, 50, 51]);
        let set = folder.dataset(&images, &folder.labels(&[0, 1, 2, 3, 4, 5]));
        let (mut out, mut labels) = ([0.0; 14], [0; 7]);
        let indices = [5, 0, 3, 3, 1, 2, 4];
        set.gather(&indices, &Normaliser::identity(1), &mut out);
        set.gather_labels(&indices, &mut labels);
        assert_eq!(labels, indices);
        let bytes = out.map(|value| (value * 255.0).round() as u32);
        assert_eq!(
            bytes,
            [50, 51, 0, 1, 30, 31, 30, 31, 10, 11, 20, 21, 40, 41]
        );
        set.gather(&[], &Normaliser::identity(1), &mut []);
    }

    #[test]
    fn each_channel_has_its_own_normalisation_and_floats_are_not_scaled() {
        let folder = Folder::new();
        let values = [1.0f32, 2.0, 3.0, 4.0].map(f32::to_be_bytes);
        let images = folder.idx(0x0d, &[1, 2, 1, 2], values.as_flattened());
        let set = folder.dataset(&images, &folder.labels(&[0]));
        assert_eq!(
            (set.shape(), set.element()),
            ([2, 2, 1], StoredElement::F32)
        );
        let normaliser = Normaliser::new(&[1.0, 2.0], &[0.5, 4.0], 2).unwrap();
        let mut out = [0.0; 4];
        set.gather(&[0], &normaliser, &mut out);
        assert_eq!(out, [0.0, 0.0, 4.0, 0.5]);
    }

    #[test]
    fn vectors_are_normalised_number_by_number_or_all_alike() {
        let numbers = [-2.5f32, 0.0, 1.0, 3.25, 100.0, -0.0];
        let (folder, set) = crate::testing::vectors(&numbers, 3);
        let gather = |normaliser: &Normaliser| {
            let mut out = [9.0f32; 6];
            set.gather(&[1, 0], normaliser, &mut out);
            out.map(f32::to_bits)
        };
        drop(folder);
        assert_eq!(set.shape(), [3, 1, 1]);
        let turned = [3.25f32, 100.0, -0.0, -2.5, 0.0, 1.0];
        assert_eq!(gather(&Normaliser::identity(3)), turned.map(f32::to_bits));

        let wide: Vec<f32> = (0..2 * 50).map(|i| i as f32 * 0.37 - 5.0).collect();
        let (_folder, set) = crate::testing::vectors(&wide, 50);
        let (mean, std): (Vec<f64>, Vec<f64>) = (0..50)
            .map(|i| (f64::from(i) * 0.1, 1.0 + f64::from(i)))
            .unzip();
        for (mean, std) in [
            (&mean[..], &std[..]),
            (&[0.3], &std),
            (&[0.3], &[0.7]),
            (&[0.0], &[1.0]),
        ] {
            let normaliser = Normaliser::new(mean, std, 50).unwrap();
            let mut out = vec![9.0; 100];
            set.gather(&[0, 1], &normaliser, &mut out);
            for (i, (found, raw)) in out.iter().zip(&wide).enumerate() {
                let of = |values: &[f64]| values[if values.len() == 1 { 0 } else { i % 50 }] as f32;
                assert_eq!(found.to_bits(), ((raw - of(mean)) / of(std)).to_bits());
            }
        }
    }

    proptest! {
        #[test]
        fn an_augmented_row_does_not_depend_on_the_batch_around_it(
            indices in prop::collection::vec(0u32..20, 1..12),
            step: u64,
            seed: u64,
        ) {
            let set = small_images();
            let augment = Augment { crop_padding: 2, flip: true };
            let augmenter = Augmenter::new(augment, set.shape(), seed).unwrap();
            let normaliser = Normaliser::new(&[0.1, 0.2, 0.3], &[0.4], 3).unwrap();
            let len = set.sample_len();
            let mut together = vec![0.0; indices.len() * len];
            set.gather_augmented(&indices, &normaliser, (&augmenter, step), &mut together);
            for (&index, row) in indices.iter().zip(together.chunks(len)) {
                let mut alone = vec![0.0; len];
                set.gather_augmented(&[index], &normaliser, (&augmenter, step), &mut alone);
                prop_assert_eq!(row, &alone);
            }
        }
    }

    /// 20 images of 6 x 5 pixels in three colours.
    fn small_images() -> Dataset {
        let folder = Folder::new();
        let pixels: Vec<u8> = (0..20 * 90u32).map(|i| ((i * i) >> 3) as u8).collect();
        let labels: Vec<u8> = (0..20).collect();
        folder.dataset(
            &folder.idx(8, &[20, 6, 5, 3], &pixels),
            &folder.labels(&labels),
        )
    }

    #[test]
    fn an_augmentation_that_changes_nothing_gives_the_same_bits() {
        let set = small_images();
        let normaliser = Normaliser::new(&[0.1, 0.2, 0.3], &[0.4], 3).unwrap();
        let augmenter = Augmenter::new(Augment::default(), set.shape(), 5).unwrap();
        let indices: Vec<u32> = (0..20).collect();
        let (mut plain, mut augmented) = (vec![0.0; 1800], vec![1.0; 1800]);
        set.gather(&indices, &normaliser, &mut plain);
        set.gather_augmented(&indices, &normaliser, (&augmenter, 9), &mut augmented);
        assert_eq!(plain, augmented);
        let mirrored = Augment {
            flip: true,
            ..Augment::default()
        };
        let augmenter = Augmenter::new(mirrored, set.shape(), 5).unwrap();
        set.gather_augmented(&indices, &normaliser, (&augmenter, 9), &mut augmented);
        assert_ne!(plain, augmented);
    }

    #[test]
    fn a_normalisation_that_does_not_fit_is_refused_by_its_key() {
        let reason =
            |mean: &[f64], std: &[f64]| Normaliser::new(mean, std, 3).unwrap_err().to_string();
        assert!(reason(&[0.0, 0.0], &[1.0]).contains("mean has 2 numbers for 3 channels"));
        let single = Normaliser::new(&[0.0, 0.0], &[1.0], 1).unwrap_err();
        let expected = "mean has 2 numbers for 1 channel; give 1";
        assert!(single.to_string().ends_with(expected), "{single}");
        assert!(reason(&[f64::NAN], &[1.0]).contains("mean holds NaN"));
        for wrong in [0.0, -1.0, 1e-50, f64::NAN, f64::INFINITY] {
            let reason = reason(&[0.0], &[1.0, 1.0, wrong]);
            assert!(reason.contains("std holds"), "{wrong}: {reason}");
        }
    }
}
