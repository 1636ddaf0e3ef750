//! Batches: rows of normalised numbers, gathered from samples anywhere in a set.
//!
//! The bits of a row are the same on every machine: a byte's value comes from a table that is
//! computed in double precision and rounded once, and a float's from one subtraction and one
//! division, which IEEE 754 defines to the last bit.

use crate::{DataError, Dataset, Element};

/// How raw values become the numbers that a model sees: `(x - mean) / std` for each channel, where a
/// byte counts as `x / 255`.
#[derive(Debug, Clone, PartialEq)]
pub struct Normaliser {
    channels: Vec<Channel>,
}

#[derive(Debug, Clone, PartialEq)]
struct Channel {
    mean: f32,
    std: f32,
    /// The value of each byte.
    bytes: [f32; 256],
}

impl Normaliser {
    /// Normalises `channels` channels; a single mean or deviation stands for all of them.
    ///
    /// # Errors
    /// When there is neither one number nor one for each channel, when a number is not finite, or
    /// when a deviation is not above 0.
    pub fn new(mean: &[f64], std: &[f64], channels: usize) -> Result<Normaliser, DataError> {
        let refused = |reason| Err(DataError::Normalise { reason });
        for (key, values) in [("mean", mean), ("std", std)] {
            if values.len() != 1 && values.len() != channels {
                let found = values.len();
                return refused(format!(
                    "{key} has {found} numbers, but the samples have {channels} channels: give 1 or {channels}"
                ));
            }
            // Checked as they are used: a deviation that f32 rounds to 0 would divide by it.
            if let Some(wrong) = values.iter().find(|value| !(**value as f32).is_finite()) {
                return refused(format!("{key} holds {wrong}; it must be a finite number"));
            }
        }
        if let Some(wrong) = std
            .iter()
            .find(|value| (**value as f32) < f32::MIN_POSITIVE)
        {
            return refused(format!("std holds {wrong}; it must be above 0"));
        }
        let of_channel =
            |values: &[f64], channel| values[if values.len() == 1 { 0 } else { channel }];
        let channels = (0..channels)
            .map(|channel| Channel::new(of_channel(mean, channel), of_channel(std, channel)))
            .collect();
        Ok(Normaliser { channels })
    }

    /// Changes nothing but the scale: bytes become 0 to 1, numbers stay.
    pub fn identity(channels: usize) -> Normaliser {
        Normaliser {
            channels: vec![Channel::new(0.0, 1.0); channels],
        }
    }
}

impl Channel {
    fn new(mean: f64, std: f64) -> Channel {
        let bytes = std::array::from_fn(|byte| ((byte as f64 / 255.0 - mean) / std) as f32);
        Channel {
            mean: mean as f32,
            std: std as f32,
            bytes,
        }
    }
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
        let [channels, height, width] = self.shape();
        assert_eq!(
            normaliser.channels.len(),
            channels,
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
        let plane = height * width;
        match self.element() {
            Element::U8 => gather_rows(self.bytes(), indices, plane, normaliser, out, from_bytes),
            Element::F32 => {
                gather_rows(self.floats(), indices, plane, normaliser, out, from_floats)
            }
        }
    }
}

/// Converts each channel's `plane` values of each sample with `convert`.
#[inline(always)]
fn gather_rows<T>(
    samples: &[T],
    indices: &[u32],
    plane: usize,
    normaliser: &Normaliser,
    out: &mut [f32],
    convert: impl Fn(&Channel, &[T], &mut [f32]),
) {
    let sample_len = plane * normaliser.channels.len();
    for (row, &index) in out.chunks_exact_mut(sample_len).zip(indices) {
        let sample = &samples[index as usize * sample_len..][..sample_len];
        let planes = row.chunks_exact_mut(plane).zip(sample.chunks_exact(plane));
        for (channel, (row, sample)) in normaliser.channels.iter().zip(planes) {
            convert(channel, sample, row);
        }
    }
}

#[inline(always)]
fn from_bytes(channel: &Channel, bytes: &[u8], out: &mut [f32]) {
    for (value, &byte) in out.iter_mut().zip(bytes) {
        *value = channel.bytes[usize::from(byte)];
    }
}

#[inline(always)]
fn from_floats(channel: &Channel, floats: &[f32], out: &mut [f32]) {
    for (value, &float) in out.iter_mut().zip(floats) {
        *value = (float - channel.mean) / channel.std;
    }
}
