//! Images as they are stored, for whoever makes what a model sees of them elsewhere, as on a GPU.

use crate::{Dataset, Normaliser, StoredElement};

/// Images, and how their values become the numbers that a model sees.
#[derive(Debug)]
pub struct StoredImages<'a> {
    /// The channels of a pixel beside each other, pixel by pixel, line by line, image by image.
    pub values: StoredValues<'a>,
    /// The most that a value may become by a change of colours.
    pub most: f32,
    /// Of each channel what is subtracted, and what is divided by then.
    pub scales: Vec<(f32, f32)>,
}

/// The values of images.
#[derive(Debug, Clone, Copy)]
pub enum StoredValues<'a> {
    /// Bytes.
    Bytes(&'a [u8]),
    /// Numbers as they are.
    Numbers(&'a [f32]),
}

impl StoredElement {
    /// What stands for 1, and the most that a value may become by a change of colours.
    pub(crate) fn range(self) -> (f64, f32) {
        match self {
            Self::U8 => (255.0, 255.0),
            Self::F32 => (1.0, f32::MAX),
        }
    }
}

impl Dataset {
    /// The set's images as they are stored; nothing of rows that are encoded, or that have a scale for each of many numbers.
    pub fn stored_images(&self, normaliser: &Normaliser) -> Option<StoredImages<'_>> {
        let [channels, height, _] = self.shape();
        if height == 1 || normaliser.encoding().is_some() {
            return None;
        }
        let (one, most) = self.element().range();
        let scale = normaliser.scale(one)?;
        Some(StoredImages {
            values: match self.element() {
                StoredElement::U8 => StoredValues::Bytes(self.bytes()),
                StoredElement::F32 => StoredValues::Numbers(self.floats()),
            },
            most,
            scales: (0..channels)
                .map(|channel| scale.channel(channel))
                .collect(),
        })
    }
}
