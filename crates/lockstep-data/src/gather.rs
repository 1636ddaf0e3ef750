//! Batches: rows of normalised numbers, gathered from samples anywhere in a set.
//!
//! The bits of a row are the same on every machine: each number is one subtraction and one division
//! of single precision, which IEEE 754 defines to the last bit, whatever the vector unit.

use crate::prefetch::prefetch;
use crate::{DataError, Dataset, Element};

/// How many rows ahead of the one being written samples are asked for: enough to cover the way to
/// main memory, few enough to stay within what a core can have under way.
const ROWS_AHEAD: usize = 4;

/// How raw values become the numbers that a model sees: `(x - mean) / std` for each channel, where a
/// byte counts as `x / 255`.
#[derive(Debug, Clone, PartialEq)]
pub struct Normaliser {
    channels: Vec<Channel>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Channel {
    mean: f64,
    std: f64,
}

impl Normaliser {
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
        Ok(Normaliser {
            channels: (0..channels).map(channel).collect(),
        })
    }

    /// Changes nothing but the scale: bytes become 0 to 1, numbers stay.
    pub fn identity(channels: usize) -> Normaliser {
        Normaliser {
            channels: vec![
                Channel {
                    mean: 0.0,
                    std: 1.0
                };
                channels
            ],
        }
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
    Err(DataError::Normalise { reason })
}

impl Dataset {
    /// Writes the samples `indices`, normalised, to the rows of `out`, and their labels to `labels`.
    /// Allocates nothing.
    ///
    /// # Panics
    /// When an index is not below [`len`](Dataset::len), `out` does not hold exactly a row of
    /// [`sample_len`](Dataset::sample_len) for each index and `labels` a number, or `normaliser` is
    /// for another number of channels.
    pub fn gather(
        &self,
        indices: &[u32],
        normaliser: &Normaliser,
        out: &mut [f32],
        labels: &mut [u32],
    ) {
        let channels = &normaliser.channels;
        assert_eq!(
            channels.len(),
            self.shape()[0],
            "a normaliser for other channels"
        );
        assert_eq!(
            out.len(),
            indices.len() * self.sample_len(),
            "one row for each index"
        );
        assert_eq!(labels.len(), indices.len(), "one label for each index");
        let all_labels = self.labels();
        for (label, &index) in labels.iter_mut().zip(indices) {
            *label = all_labels[index as usize];
        }
        match self.element() {
            Element::U8 => gather_rows(self.bytes(), indices, channels, 255.0, out),
            Element::F32 => gather_rows(self.floats(), indices, channels, 1.0, out),
        }
    }
}

/// Normalises the samples `indices` of `samples`, in which 1 is stored as `one`.
#[inline(always)]
fn gather_rows<T: Copy + Into<f32>>(
    samples: &[T],
    indices: &[u32],
    channels: &[Channel],
    one: f64,
    out: &mut [f32],
) {
    if indices.is_empty() {
        return;
    }
    let sample_len = out.len() / indices.len();
    let plane = sample_len / channels.len();
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
        let planes = row
            .chunks_exact_mut(plane)
            .zip(sample(index).chunks_exact(plane));
        for ((row, values), channel) in planes.zip(channels) {
            let (shift, scale) = ((one * channel.mean) as f32, (one * channel.std) as f32);
            for (number, &value) in row.iter_mut().zip(values) {
                *number = (value.into() - shift) / scale;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn bytes_are_scaled_and_normalised_to_the_last_bit() {
        let folder = Folder::new();
        let bytes: Vec<u8> = (0..=255).collect();
        let set = folder.dataset(&folder.idx(8, &[256], &bytes), &folder.labels(&[0; 256]));
        let indices: Vec<u32> = (0..256).collect();
        let (mut out, mut labels) = ([0.0; 256], [9; 256]);
        set.gather(&indices, &Normaliser::identity(1), &mut out, &mut labels);
        for (byte, value) in out.iter().enumerate() {
            assert_eq!(value.to_bits(), (byte as f32 / 255.0).to_bits(), "{byte}");
        }
        assert_eq!(labels, [0; 256]);

        let normaliser = Normaliser::new(&[0.28604], &[0.32025], 1).unwrap();
        set.gather(&indices, &normaliser, &mut out, &mut labels);
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
        set.gather(&indices, &Normaliser::identity(1), &mut out, &mut labels);
        assert_eq!(labels, indices);
        let bytes = out.map(|value| (value * 255.0).round() as u32);
        assert_eq!(
            bytes,
            [50, 51, 0, 1, 30, 31, 30, 31, 10, 11, 20, 21, 40, 41]
        );
        set.gather(&[], &Normaliser::identity(1), &mut [], &mut []);
    }

    #[test]
    fn each_channel_has_its_own_normalisation_and_floats_are_not_scaled() {
        let folder = Folder::new();
        let values = [1.0f32, 2.0, 3.0, 4.0].map(f32::to_be_bytes);
        let images = folder.idx(0x0d, &[1, 2, 1, 2], values.as_flattened());
        let set = folder.dataset(&images, &folder.labels(&[0]));
        assert_eq!((set.shape(), set.element()), ([2, 1, 2], Element::F32));
        let normaliser = Normaliser::new(&[1.0, 2.0], &[0.5, 4.0], 2).unwrap();
        let mut out = [0.0; 4];
        set.gather(&[0], &normaliser, &mut out, &mut [0]);
        assert_eq!(out, [0.0, 2.0, 0.25, 0.5]);
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
