//! From bytes to the numbers that a model was trained on: every channel less its mean, by its deviation.

use serde::{Deserialize, Serialize};

use crate::ImageError;

/// Mean and deviation of red, green and blue, where pixels reach from 0 to 1. In a job file a name or the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Normalise {
    /// What is subtracted.
    pub mean: [f32; 3],
    /// What is divided by.
    pub std: [f32; 3],
}

impl Normalise {
    /// `imagenet`, `clip`, or `half` (from -1 to 1).
    pub fn by_name(name: &str) -> Option<Normalise> {
        match name {
            "imagenet" => Some(Normalise {
                mean: [0.485, 0.456, 0.406],
                std: [0.229, 0.224, 0.225],
            }),
            "clip" => Some(Normalise {
                mean: [0.481_454_66, 0.457_827_5, 0.408_210_73],
                std: [0.268_629_54, 0.261_302_6, 0.275_777_1],
            }),
            "half" => Some(Normalise {
                mean: [0.5; 3],
                std: [0.5; 3],
            }),
            _ => None,
        }
    }

    /// What a byte of a channel becomes: `(value / 255 - mean) / std`, in `f32` and in this order.
    pub fn of(&self, value: u8, channel: usize) -> f32 {
        (f32::from(value) / 255.0 - self.mean[channel]) / self.std[channel]
    }
}

/// How it is written in a job file.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Name(String),
    Numbers(Numbers),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Numbers {
    mean: [f32; 3],
    std: [f32; 3],
}

impl TryFrom<Written> for Normalise {
    type Error = ImageError;

    fn try_from(written: Written) -> Result<Normalise, ImageError> {
        match written {
            Written::Name(name) => Normalise::by_name(&name).ok_or_else(|| {
                let names = "imagenet, clip, half, or numbers { mean = [..], std = [..] }";
                ImageError::Transform(format!("{name:?} is no normalisation; there is {names}"))
            }),
            Written::Numbers(Numbers { mean, std }) => {
                let sound = std
                    .iter()
                    .all(|&deviation| deviation.is_finite() && deviation > 0.0);
                if !sound || !mean.iter().all(|mean| mean.is_finite()) {
                    let what = format!(
                        "normalisation by mean {mean:?} and std {std:?}: std must be above zero"
                    );
                    return Err(ImageError::Transform(what));
                }
                Ok(Normalise { mean, std })
            }
        }
    }
}

/// A [`Normalise`] worked out for every byte there is.
#[derive(Debug, Clone)]
pub struct ByteNormaliser {
    normalise: Normalise,
    table: Box<[[f32; 3]; 256]>,
}

impl ByteNormaliser {
    /// Works the table out.
    pub fn new(normalise: &Normalise) -> ByteNormaliser {
        let mut table = Box::new([[0.0; 3]; 256]);
        for (value, row) in (0..=255).zip(table.iter_mut()) {
            *row = std::array::from_fn(|channel| normalise.of(value, channel));
        }
        ByteNormaliser {
            normalise: *normalise,
            table,
        }
    }

    /// What this was made from.
    pub fn normalise(&self) -> &Normalise {
        &self.normalise
    }

    /// Normalises RGB pixels, channels innermost on both sides.
    ///
    /// # Panics
    /// If the two differ in length.
    pub fn apply(&self, pixels: &[u8], out: &mut [f32]) {
        assert_eq!(pixels.len(), out.len(), "a number for every byte");
        let (pixels, _) = pixels.as_chunks::<3>();
        let (out, _) = out.as_chunks_mut::<3>();
        for (&pixel, out) in pixels.iter().zip(out) {
            *out = self.pixel(pixel);
        }
    }

    /// The numbers of one pixel.
    pub(crate) fn pixel(&self, [red, green, blue]: [u8; 3]) -> [f32; 3] {
        [
            self.table[usize::from(red)][0],
            self.table[usize::from(green)][1],
            self.table[usize::from(blue)][2],
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_read() {
        let named: Normalise = serde_json::from_str("\"half\"").unwrap();
        let numbers: Normalise =
            serde_json::from_str(r#"{"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}"#).unwrap();
        assert_eq!(named, numbers);
    }

    #[test]
    fn a_wrong_name_says_what_there_is() {
        let error = serde_json::from_str::<Normalise>("\"image-net\"")
            .unwrap_err()
            .to_string();
        assert!(error.contains("imagenet, clip, half"), "{error}");
    }

    #[test]
    fn a_deviation_of_zero_is_refused() {
        let text = r#"{"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.0, 0.5]}"#;
        assert!(serde_json::from_str::<Normalise>(text).is_err());
    }

    #[test]
    fn the_table_is_the_formula_for_every_byte() {
        let normalise = Normalise::by_name("clip").unwrap();
        let pixels: Vec<u8> = (0..=255).flat_map(|value| [value; 3]).collect();
        let mut out = vec![0.0; pixels.len()];
        ByteNormaliser::new(&normalise).apply(&pixels, &mut out);
        for (place, (&value, &number)) in pixels.iter().zip(&out).enumerate() {
            assert_eq!(number.to_bits(), normalise.of(value, place % 3).to_bits());
        }
    }
}
